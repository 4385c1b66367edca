/* SPDX-License-Identifier: Apache-2.0 */
/* config - reads a CredentialProviderConfig (k8s.io/kubernetes/pkg/kubelet/apis/config), as strictly as
 * kubelet. */
#include "agent/image/provider/image_glob.h"
#include "agent/image/provider/internal.h"

#include "agent/api/yaml/yaml.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/duration.h"
#include "base/files/fs.h"
#include "base/process/env.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_GROUP "kubelet.config.k8s.io/"
#define CONFIG_TEXTS_MAX 1000 /* of matchImages, args, env */

/* ---- fields ---- */

static enum err_code config_text(const json_t *of, const char *field, const char **ret, struct err *e)
{
    const json_t *v = json_object_get(of, field);

    if (v == NULL || json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0))
        return err_set(e, ERR_INVALID, "%s: is required", field);
    if (!json_is_string(v))
        return err_set(e, ERR_INVALID, "%s: must be a text", field);
    *ret = json_string_value(v);
    return ERR_OK;
}

static enum err_code config_list(const json_t *of, const char *field, json_t **ret, struct err *e)
{
    json_t *v = json_object_get(of, field);

    *ret = NULL;
    if (v == NULL || json_is_null(v))
        return ERR_OK;
    if (!json_is_array(v))
        return err_set(e, ERR_INVALID, "%s: must be a list", field);
    if (json_array_size(v) > CONFIG_TEXTS_MAX)
        return err_set(e, ERR_INVALID, "%s: has more than %d entries", field, CONFIG_TEXTS_MAX);
    *ret = v;
    return ERR_OK;
}

static enum err_code config_only(json_t *of, const char *const *allowed, struct err *e)
{
    const char *field;
    json_t *value;

    json_object_foreach (of, field, value) {
        buf_auto all = BUF_INIT(1024);
        size_t i = 0;

        for (; allowed[i] != NULL && strcmp(allowed[i], field) != 0; i++)
            buf_addf(&all, "%s%s", i > 0 ? ", " : "", allowed[i]);
        if (allowed[i] == NULL)
            return err_set(e, ERR_INVALID, "%.60s: unknown field; known are %s", field,
                           all.p != NULL ? all.p : "");
    }
    return ERR_OK;
}

/* ---- a provider ---- */

static bool config_is_glob(const char *text)
{
    const size_t host = strcspn(text, "/");
    const char *colon = memrchr(text, ':', host), *bracket = memrchr(text, ']', host);

    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return false;
    if (host == 0 || strstr(text, "://") != NULL)
        return false;
    if (colon == NULL || (bracket != NULL && colon < bracket))
        return true;
    return colon > text && strspn(colon + 1, "0123456789") == host - (size_t)(colon + 1 - text);
}

static enum err_code config_match(struct provider *p, const json_t *of, struct err *e)
{
    json_t *list, *v;
    size_t i;

    if (config_list(of, "matchImages", &list, e) != ERR_OK)
        return e->code;
    if (json_array_size(list) == 0)
        return err_set(e, ERR_INVALID, "matchImages: needs at least one entry");
    json_array_foreach (list, i, v) {
        if (!json_is_string(v) || !config_is_glob(json_string_value(v)))
            return err_set(
                e, ERR_INVALID,
                "matchImages[%zu]: must be a host as \"*.example.com\", which may be followed by a "
                "port and a path, without a scheme",
                i);
        if (!strs_add(&p->match, json_string_value(v)))
            return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code config_argv(struct provider *p, const json_t *of, const char *bin_dir, struct err *e)
{
    json_t *list, *v;
    size_t i;

    if (config_list(of, "args", &list, e) != ERR_OK)
        return e->code;
    if (!strs_take(&p->argv, str_printf("%s/%s", bin_dir, p->name)))
        return err_nomem(e);
    json_array_foreach (list, i, v) {
        if (!json_is_string(v))
            return err_set(e, ERR_INVALID, "args[%zu]: must be a text", i);
        if (!strs_add(&p->argv, json_string_value(v)))
            return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code config_env(struct provider *p, const json_t *of, const char *const *environment,
                                struct err *e)
{
    static const char *const allowed[] = { "name", "value", NULL };
    json_t *list, *v;
    size_t i;

    if (config_list(of, "env", &list, e) != ERR_OK)
        return e->code;
    if (!proc_env_inherit(&p->env, environment))
        return err_nomem(e);
    json_array_foreach (list, i, v) {
        const char *name = json_str(v, "name"), *value = json_str(v, "value");

        if (!json_is_object(v) || name == NULL || *name == '\0' || strchr(name, '=') != NULL ||
            (value == NULL && json_object_get(v, "value") != NULL))
            return err_set(e, ERR_INVALID,
                           "env[%zu]: name and value must be strings, and name must not contain \"=\"", i);
        if (config_only(v, allowed, e) != ERR_OK)
            return err_wrap(e, "env[%zu]", i);
        if (!proc_env_put(&p->env, str_printf("%s=%s", name, value != NULL ? value : "")))
            return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code config_name(struct provider *p, const json_t *of, struct err *e)
{
    const char *name = NULL, *version = NULL;

    if (config_text(of, "name", &name, e) != ERR_OK || config_text(of, "apiVersion", &version, e) != ERR_OK)
        return e->code;
    if (strchr(name, '/') != NULL || strchr(name, ' ') != NULL || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0 || strlen(name) > 255)
        return err_set(e, ERR_INVALID, "name: must be the name of a program, without \"/\" and spaces");
    if (strcmp(version, PROVIDER_GROUP "v1") != 0 && strcmp(version, PROVIDER_GROUP "v1beta1") != 0 &&
        strcmp(version, PROVIDER_GROUP "v1alpha1") != 0)
        return err_set(e, ERR_INVALID,
                       "apiVersion: must be " PROVIDER_GROUP "v1, v1beta1 or v1alpha1 of that group");
    p->name = strdup(name);
    p->version = strdup(version);
    return p->name == NULL || p->version == NULL ? err_nomem(e) : ERR_OK;
}

static enum err_code config_provider(struct provider *p, json_t *of, const char *bin_dir,
                                     const char *const *environment, struct err *e)
{
    static const char *const allowed[] = { "name",       "matchImages", "defaultCacheDuration",
                                           "apiVersion", "args",        "env",
                                           NULL };
    const char *duration = NULL;

    if (!json_is_object(of))
        return err_set(e, ERR_INVALID, "must be a map");
    if (json_object_get(of, "tokenAttributes") != NULL)
        return err_set(
            e, ERR_INVALID,
            "tokenAttributes: is not supported: providers get no token of a pod's service account");
    if (config_only(of, allowed, e) != ERR_OK || config_name(p, of, e) != ERR_OK ||
        config_match(p, of, e) != ERR_OK || config_text(of, "defaultCacheDuration", &duration, e) != ERR_OK)
        return e->code;
    if (!duration_parse(duration, &p->default_ns) || p->default_ns < 0)
        return err_set(e, ERR_INVALID,
                       "defaultCacheDuration: must be a duration such as \"12h\", at least 0s");
    return config_argv(p, of, bin_dir, e) == ERR_OK ? config_env(p, of, environment, e) : e->code;
}

/* ---- the file ---- */

static int config_by_name(const void *a, const void *b)
{
    return strcmp(((const struct provider *)a)->name, ((const struct provider *)b)->name);
}

static enum err_code config_providers(struct provider_set *s, json_t *list, const char *bin_dir,
                                      const char *const *environment, struct err *e)
{
    json_t *v;
    size_t i;

    if (json_array_size(list) == 0)
        return err_set(e, ERR_INVALID, "providers: needs at least one entry");
    if (json_array_size(list) > PROVIDER_MAX)
        return err_set(e, ERR_INVALID, "providers: has more than %d entries", PROVIDER_MAX);
    s->v = calloc(json_array_size(list), sizeof(*s->v));
    if (s->v == NULL)
        return err_nomem(e);
    json_array_foreach (list, i, v) {
        s->n++;
        if (config_provider(&s->v[i], v, bin_dir, environment, e) != ERR_OK)
            return err_wrap(e, "providers[%zu]", i);
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->v[k].name, s->v[i].name) == 0)
                return err_set(e, ERR_INVALID, "providers[%zu].name: \"%.100s\" is given twice", i,
                               s->v[i].name);
    }
    qsort(s->v, s->n, sizeof(*s->v), config_by_name);
    return ERR_OK;
}

static enum err_code config_document(struct provider_set *s, json_t *doc, const char *bin_dir,
                                     const char *const *environment, struct err *e)
{
    static const char *const allowed[] = { "apiVersion", "kind", "providers", NULL };
    const char *version = json_str(doc, "apiVersion"), *kind = json_str(doc, "kind");

    if (!json_is_object(doc) || kind == NULL || strcmp(kind, "CredentialProviderConfig") != 0)
        return err_set(e, ERR_INVALID, "kind: must be CredentialProviderConfig");
    if (version == NULL ||
        (strcmp(version, CONFIG_GROUP "v1") != 0 && strcmp(version, CONFIG_GROUP "v1beta1") != 0 &&
         strcmp(version, CONFIG_GROUP "v1alpha1") != 0))
        return err_set(e, ERR_INVALID,
                       "apiVersion: must be " CONFIG_GROUP "v1, v1beta1 or v1alpha1 of that group");
    if (config_only(doc, allowed, e) != ERR_OK)
        return e->code;
    return config_providers(s, json_object_get(doc, "providers"), bin_dir, environment, e);
}

enum err_code provider_config_read(struct provider_set *ret, const char *text, size_t n, const char *bin_dir,
                                   const char *const *environment, struct err *e)
{
    struct provider_set s = { 0 };
    json_t *docs = NULL;
    mem_auto int *numbers = NULL;

    if (yaml_to_json(text, n, &docs, &numbers, NULL, e) == ERR_OK) {
        if (json_array_size(docs) != 1)
            err_set(e, ERR_INVALID, "there are %zu documents instead of one", json_array_size(docs));
        else
            ERR_IGNORE(config_document(&s, json_array_get(docs, 0), bin_dir, environment, e));
    }
    provider_wipe(docs); /* env may have secrets */
    if (e->code != ERR_OK) {
        provider_config_done(&s);
        return e->code;
    }
    *ret = s;
    return ERR_OK;
}

void provider_config_done(struct provider_set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct provider *p = &s->v[i];

        for (size_t k = 0; k < p->env.n; k++)
            explicit_bzero(p->env.v[k], strlen(p->env.v[k]));
        free(p->name);
        free(p->version);
        strs_done(&p->match);
        strs_done(&p->argv);
        strs_done(&p->env);
    }
    free(s->v);
    *s = (struct provider_set){ 0 };
}

/* ---- a set ---- */

static enum err_code config_programs(const struct provider_set *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        const char *path = s->v[i].argv.v[0];
        struct stat st;

        if (stat(path, &st) != 0)
            return err_sys(e, errno, "provider \"%.100s\": %.200s", s->v[i].name, path);
        if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0)
            return err_set(e, ERR_INVALID, "provider \"%.100s\": %.200s is not a program", s->v[i].name,
                           path);
    }
    return ERR_OK;
}

enum err_code provider_set_open(struct provider_set **ret, const char *file, const char *bin_dir,
                                const char *const *environment, struct err *e)
{
    struct provider_set *s = calloc(1, sizeof(*s));
    char *text = NULL;
    size_t n = 0;

    if (s == NULL)
        return err_nomem(e);
    if (fs_read_at(AT_FDCWD, file, PROVIDER_CONFIG_MAX, &text, &n, e) != ERR_OK) {
        free(s);
        return e->code;
    }
    if (provider_config_read(s, text, n, bin_dir, environment, e) != ERR_OK ||
        config_programs(s, e) != ERR_OK)
        err_wrap(e, "%.200s", file);
    explicit_bzero(text, n);
    free(text);
    if (e->code != ERR_OK) {
        provider_set_free(s);
        return e->code;
    }
    *ret = s;
    return ERR_OK;
}

void provider_set_free(struct provider_set *s)
{
    if (s == NULL)
        return;
    provider_cache_done(&s->cache);
    provider_config_done(s);
    free(s);
}

bool provider_is_for(const struct provider *p, const char *repository)
{
    for (size_t i = 0; i < p->match.n; i++)
        if (image_glob_matches(p->match.v[i], repository))
            return true;
    return false;
}
