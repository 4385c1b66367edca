/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/plugin/conf.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "cni/plugin/names.h"

#include <string.h>

static enum err_code parse_object(json_t **ret, const char *text, size_t n, struct err *e)
{
    json_t *v = NULL;

    if (json_parse(text, n, CNI_CONF_MAX, &v, "CNI configuration", e) != ERR_OK)
        return e->code;
    if (!json_is_object(v)) {
        json_decref(v);
        return err_set(e, ERR_INVALID, "CNI configuration: not a JSON object");
    }
    *ret = v;
    return ERR_OK;
}

/* CNI booleans may be written as JSON booleans or as the strings "true" and "false". */
static enum err_code get_bool(const json_t *obj, const char *key, bool *ret, struct err *e)
{
    const json_t *v = json_object_get(obj, key);
    const char *s = json_string_value(v);

    if (v == NULL)
        *ret = false;
    else if (json_is_boolean(v))
        *ret = json_is_true(v);
    else if (s != NULL && strcmp(s, "true") == 0)
        *ret = true;
    else if (s != NULL && strcmp(s, "false") == 0)
        *ret = false;
    else
        return err_set(e, ERR_INVALID, "%s: not true or false", key);
    return ERR_OK;
}

static enum err_code get_text(const json_t *obj, const char *key, const char **ret, struct err *e)
{
    const json_t *v = json_object_get(obj, key);

    if (v != NULL && !json_is_string(v))
        return err_set(e, ERR_INVALID, "%s: not a string", key);
    *ret = json_string_value(v);
    return ERR_OK;
}

static void conf_note_version(struct cni_list *l, const char *text)
{
    int number = cni_version_number(text);
    size_t i = 0;

    while (i < l->n_versions && l->versions[i] > number)
        i++;
    if (number < 0 || l->n_versions == CNI_VERSIONS_MAX || (i < l->n_versions && l->versions[i] == number))
        return;
    memmove(l->versions + i + 1, l->versions + i, (l->n_versions - i) * sizeof(l->versions[0]));
    l->versions[i] = number;
    l->n_versions++;
}

/* The supported versions of cniVersion and cniVersions (CNI 1.1), highest first. */
static enum err_code read_versions(const json_t *obj, struct cni_list *l, struct err *e)
{
    const json_t *many = json_object_get(obj, "cniVersions"), *v;
    const char *one = NULL;
    size_t i;

    l->n_versions = 0;
    if (get_text(obj, "cniVersion", &one, e) != ERR_OK)
        return e->code;
    if (many != NULL && !json_is_array(many))
        return err_set(e, ERR_INVALID, "cniVersions: not a list");
    if (many == NULL || json_array_size(many) == 0 || (one != NULL && one[0] != '\0'))
        conf_note_version(l, one);
    json_array_foreach (many, i, v) {
        const char *text = json_string_value(v);

        if (text == NULL)
            return err_set(e, ERR_INVALID, "cniVersions[%zu]: not a string", i);
        if (text[0] != '\0')
            conf_note_version(l, text);
    }
    if (l->n_versions == 0)
        return err_set(e, ERR_INVALID,
                       "cniVersion \"%.20s\" is not supported (0.1.0 to " CNI_VERSION_HIGHEST " are)",
                       one != NULL ? one : "");
    l->version = l->versions[0];
    return ERR_OK;
}

enum err_code cni_list_choose(struct cni_list *l, int version, struct err *e)
{
    if (json_object_set_new(l->conf, "cniVersion", json_string(cni_version_text(version))) < 0)
        return err_nomem(e);
    l->version = version;
    return ERR_OK;
}

/* Determines the list's name and version and writes them to conf. `file` is the name of a list without
 * one. */
static enum err_code set_head(struct cni_list *l, json_t *conf, const char *file, struct err *e)
{
    const char *name = NULL;

    if (read_versions(conf, l, e) != ERR_OK || get_text(conf, "name", &name, e) != ERR_OK)
        return e->code;
    if (name == NULL || name[0] == '\0')
        name = file;
    if (!cni_name_ok(name))
        return err_set(
            e, ERR_INVALID,
            "network name \"%.120s\": must begin with a letter or digit, then letters, digits, \"_\", \".\", "
            "\"-\", at most %d",
            name, CNI_NAME_MAX);
    if (json_object_set_new(conf, "name", json_string(name)) < 0 ||
        json_object_set_new(conf, "cniVersion", json_string(cni_version_text(l->version))) < 0)
        return err_nomem(e);
    json_object_del(conf, "cniVersions"); /* determined above */
    l->name = json_str(conf, "name");
    return ERR_OK;
}

enum err_code cni_list_parse(struct cni_list *ret, const char *file, const char *text, size_t n,
                             bool *ret_more, struct err *e)
{
    struct cni_list l = { 0 };
    json_auto_t *conf = NULL;
    json_t *plugins;
    bool inline_only;

    if (parse_object(&conf, text, n, e) != ERR_OK || set_head(&l, conf, file, e) != ERR_OK ||
        get_bool(conf, "loadOnlyInlinedPlugins", &inline_only, e) != ERR_OK ||
        get_bool(conf, "disableCheck", &l.disable_check, e) != ERR_OK ||
        get_bool(conf, "disableGC", &l.disable_gc, e) != ERR_OK)
        return e->code;

    plugins = json_object_get(conf, "plugins");
    if (plugins == NULL && inline_only)
        return err_set(e, ERR_INVALID, "plugins: missing, and loadOnlyInlinedPlugins is set");
    if (plugins == NULL) {
        if (json_object_set_new(conf, "plugins", json_array()) < 0)
            return err_nomem(e);
    } else if (!json_is_array(plugins)) {
        return err_set(e, ERR_INVALID, "plugins: not a list");
    }
    *ret_more = !inline_only;
    l.conf = take_ptr(&conf);
    *ret = l;
    return ERR_OK;
}

enum err_code cni_list_parse_single(struct cni_list *ret, const char *file, const char *text, size_t n,
                                    struct err *e)
{
    struct cni_list l = { 0 };
    json_auto_t *plugin = NULL, *conf = NULL;

    if (parse_object(&plugin, text, n, e) != ERR_OK)
        return e->code;
    if (json_object_get(plugin, "type") == NULL && json_object_get(plugin, "plugins") != NULL)
        return err_set(e, ERR_INVALID,
                       "type: missing; a list of plugins belongs into a file named .conflist");
    if (set_head(&l, plugin, file, e) != ERR_OK)
        return e->code;
    conf = json_pack("{s:s, s:s, s:[O]}", "name", l.name, "cniVersion", cni_version_text(l.version),
                     "plugins", plugin);
    if (conf == NULL)
        return err_nomem(e);
    l.name = json_str(conf, "name");
    l.conf = take_ptr(&conf);
    *ret = l;
    return ERR_OK;
}

enum err_code cni_list_append(struct cni_list *l, const char *text, size_t n, struct err *e)
{
    json_auto_t *plugin = NULL;

    if (parse_object(&plugin, text, n, e) != ERR_OK)
        return e->code;
    if (json_array_append(json_object_get(l->conf, "plugins"), plugin) < 0)
        return err_nomem(e);
    return ERR_OK;
}

static enum err_code check_plugin(const json_t *plugin, size_t i, struct err *e)
{
    const json_t *ipam = json_object_get(plugin, "ipam"), *caps = json_object_get(plugin, "capabilities");
    const char *type;

    if (!json_is_object(plugin))
        return err_set(e, ERR_INVALID, "plugins[%zu]: not an object", i);
    type = json_str(plugin, "type");
    if (type == NULL || type[0] == '\0')
        return err_set(e, ERR_INVALID, "plugins[%zu].type: missing", i);
    if (!cni_type_ok(type))
        return err_set(e, ERR_INVALID, "plugins[%zu].type: \"%.120s\" is not a file name", i, type);
    if (caps != NULL && !json_is_object(caps) && !json_is_null(caps))
        return err_set(e, ERR_INVALID, "plugins[%zu].capabilities: not an object", i);
    type = json_str(ipam, "type");
    if (type != NULL && type[0] != '\0' && !cni_type_ok(type))
        return err_set(e, ERR_INVALID, "plugins[%zu].ipam.type: \"%.120s\" is not a file name", i, type);
    return ERR_OK;
}

enum err_code cni_list_check(struct cni_list *l, const char *data_dir, struct err *e)
{
    size_t n = cni_list_size(l);

    if (n == 0)
        return err_set(e, ERR_INVALID, "network \"%s\": no plugins", l->name);
    if (n > CNI_PLUGINS_MAX)
        return err_set(e, ERR_EXHAUSTED, "network \"%s\": %zu plugins are more than the %d allowed", l->name,
                       n, CNI_PLUGINS_MAX);
    for (size_t i = 0; i < n; i++) {
        json_t *plugin = cni_list_plugin(l, i), *ipam = json_object_get(plugin, "ipam");

        if (check_plugin(plugin, i, e) != ERR_OK)
            return err_wrap(e, "network \"%s\"", l->name);
        if (data_dir == NULL || !json_is_object(ipam) || !str_eq(json_str(ipam, "type"), "host-local"))
            continue;
        if ((json_str(ipam, "dataDir") == NULL || json_str(ipam, "dataDir")[0] == '\0') &&
            !json_put_str(ipam, "dataDir", data_dir))
            return err_nomem(e);
    }
    return ERR_OK;
}

enum err_code cni_list_from_json(struct cni_list *ret, json_t *conf, struct err *e)
{
    struct cni_list l = { .name = json_str(conf, "name"),
                          .version = cni_version_number(json_str(conf, "cniVersion")),
                          .conf = conf };

    if (!cni_name_ok(l.name) || l.version < 0 || !json_is_array(json_object_get(conf, "plugins")))
        return err_set(e, ERR_DATA_LOSS, "not a network configuration list");
    if (get_bool(conf, "disableCheck", &l.disable_check, e) != ERR_OK ||
        get_bool(conf, "disableGC", &l.disable_gc, e) != ERR_OK || cni_list_check(&l, NULL, e) != ERR_OK)
        return e->code;
    l.versions[l.n_versions++] = l.version;
    json_incref(conf);
    *ret = l;
    return ERR_OK;
}

void cni_list_done(struct cni_list *l)
{
    json_decref(l->conf);
    *l = (struct cni_list){ 0 };
}

size_t cni_list_size(const struct cni_list *l)
{
    return json_array_size(json_object_get(l->conf, "plugins"));
}

json_t *cni_list_plugin(const struct cni_list *l, size_t i)
{
    return json_array_get(json_object_get(l->conf, "plugins"), i);
}

const char *cni_plugin_type(const json_t *plugin)
{
    return json_str(plugin, "type");
}

const char *cni_plugin_ipam_type(const json_t *plugin)
{
    const char *type = json_str(json_object_get(plugin, "ipam"), "type");

    return type != NULL && type[0] != '\0' ? type : NULL;
}

const char *cni_plugin_bridge(const json_t *plugin)
{
    const char *name = json_str(plugin, "bridge");

    if (!str_eq(json_str(plugin, "type"), "bridge"))
        return NULL;
    if (name == NULL || name[0] == '\0')
        return "cni0"; /* the plugin's own default */
    return cni_ifname_ok(name) ? name : NULL;
}

static json_t *runtime_config(const json_t *plugin, const json_t *supplied)
{
    json_t *declared = json_object_get(plugin, "capabilities"), *on, *ret = json_object();
    const char *name;

    json_object_foreach (declared, name, on) {
        json_t *value = json_object_get(supplied, name);

        if (ret != NULL && json_is_true(on) && value != NULL && json_object_set(ret, name, value) < 0) {
            json_decref(ret);
            return NULL;
        }
    }
    return ret;
}

json_t *cni_list_declared(const struct cni_list *l, json_t *supplied)
{
    json_auto_t *all = json_object();

    for (size_t i = 0; i < cni_list_size(l); i++) {
        json_auto_t *some = runtime_config(cni_list_plugin(l, i), supplied);

        if (some == NULL || json_object_update(all, some) < 0)
            return NULL;
    }
    return take_ptr(&all);
}

json_t *cni_plugin_stdin(const struct cni_list *l, size_t i, const json_t *supplied, json_t *prev_result)
{
    const json_t *plugin = cni_list_plugin(l, i);
    json_auto_t *v = json_copy((json_t *)plugin), *runtime = runtime_config(plugin, supplied);

    if (v == NULL || runtime == NULL || json_object_set_new(v, "name", json_string(l->name)) < 0 ||
        json_object_set_new(v, "cniVersion", json_string(cni_version_text(l->version))) < 0)
        return NULL;
    json_object_del(v, "capabilities"); /* per the specification, only for the runtime */
    json_object_del(v, "prevResult");
    json_object_del(v, "runtimeConfig");
    if (json_object_size(runtime) > 0 && json_object_set(v, "runtimeConfig", runtime) < 0)
        return NULL;
    if (prev_result != NULL && json_object_set(v, "prevResult", prev_result) < 0)
        return NULL;
    return take_ptr(&v);
}
