/* SPDX-License-Identifier: Apache-2.0 */
/* Edits by CDI: hooks, network devices and RDT of a specification, and the mounts of a configuration. */
#include "agent/runtime/spec/internal.h"

#include <string.h>

const char *const rt_hook_names[RT_HOOK_KINDS] = {
    [RT_HOOK_PRESTART] = "prestart",
    [RT_HOOK_CREATE_RUNTIME] = "createRuntime",
    [RT_HOOK_CREATE_CONTAINER] = "createContainer",
    [RT_HOOK_START_CONTAINER] = "startContainer",
    [RT_HOOK_POSTSTART] = "poststart",
    [RT_HOOK_POSTSTOP] = "poststop",
};

/* Sets obj[key], taking the value; NULL value: not UTF-8, or out of memory. */
static enum err_code edits_put(json_t *obj, const char *key, json_t *value, struct err *e)
{
    return json_object_set_new(obj, key, value) == 0
               ? ERR_OK
               : err_set(e, ERR_DATA_LOSS, "CDI edit %s: not UTF-8", key);
}

static enum err_code put_texts(json_t *obj, const char *key, const char *const *v, size_t n, struct err *e)
{
    json_t *list = json_array();

    if (n == 0) {
        json_decref(list);
        return ERR_OK;
    }
    if (edits_put(obj, key, list, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_string(v[i])) != 0)
            return err_set(e, ERR_DATA_LOSS, "CDI edit %s: not UTF-8", key);
    return ERR_OK;
}

static enum err_code put_text(json_t *obj, const char *key, const char *text, struct err *e)
{
    return text == NULL ? ERR_OK : edits_put(obj, key, json_string(text), e);
}

/* ---- hooks ---- */

static json_t *list_of(json_t *hooks, enum rt_hook_kind kind)
{
    json_t *list = json_object_get(hooks, rt_hook_names[kind]);

    if (list != NULL)
        return list;
    list = json_array();
    return json_object_set_new(hooks, rt_hook_names[kind], list) == 0 ? list : NULL;
}

static enum err_code put_hook(json_t *hooks, const struct rt_edit_hook *h, struct err *e)
{
    json_t *list = list_of(hooks, h->kind), *hook = json_object();

    if (list == NULL || json_array_append_new(list, hook) != 0)
        return err_nomem(e);
    if (put_text(hook, "path", h->path, e) != ERR_OK ||
        put_texts(hook, "args", h->args, h->n_args, e) != ERR_OK ||
        put_texts(hook, "env", h->env, h->n_env, e) != ERR_OK)
        return e->code;
    return h->timeout_s > 0 ? edits_put(hook, "timeout", json_integer(h->timeout_s), e) : ERR_OK;
}

static enum err_code put_hooks(const struct rt_edits *edits, json_t *spec, struct err *e)
{
    json_t *hooks = json_object();

    if (edits->n_hooks == 0) {
        json_decref(hooks);
        return ERR_OK;
    }
    if (edits_put(spec, "hooks", hooks, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < edits->n_hooks; i++)
        if (put_hook(hooks, &edits->hooks[i], e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* ---- fields that not every runtime supports; a runtime ignores unknown ones ---- */

static enum err_code put_net_devices(const struct rt_host *host, const struct rt_edits *edits,
                                     json_t *linux_section, struct err *e)
{
    const struct rt_features *f = &host->features;
    json_t *list;

    if (edits->n_net_devices == 0)
        return ERR_OK;
    if (!f->net_devices)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "CDI network device \"%s\": %s %s cannot move network devices into a container",
                       edits->net_devices[0].host_name, f->runtime_name, f->runtime_version);
    list = json_object();
    if (edits_put(linux_section, "netDevices", list, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < edits->n_net_devices; i++)
        if (edits_put(list, edits->net_devices[i].host_name,
                      json_pack("{s:s}", "name", edits->net_devices[i].name), e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code put_rdt(const struct rt_host *host, const struct rt_edits *edits, json_t *linux_section,
                             struct err *e)
{
    const struct rt_edit_rdt *rdt = edits->rdt;
    const struct rt_features *f = &host->features;
    json_t *section;

    if (rdt == NULL)
        return ERR_OK;
    if ((rdt->n_schemata > 0 || rdt->enable_monitoring) && !f->rdt_schemata)
        return err_set(e, ERR_UNIMPLEMENTED, "CDI edit intelRdt.%s: %s %s does not have it",
                       rdt->n_schemata > 0 ? "schemata" : "enableMonitoring", f->runtime_name,
                       f->runtime_version);
    section = json_object();
    if (edits_put(linux_section, "intelRdt", section, e) != ERR_OK ||
        put_text(section, "closID", rdt->clos_id, e) != ERR_OK ||
        put_text(section, "l3CacheSchema", rdt->l3_cache_schema, e) != ERR_OK ||
        put_text(section, "memBwSchema", rdt->mem_bw_schema, e) != ERR_OK ||
        put_texts(section, "schemata", rdt->schemata, rdt->n_schemata, e) != ERR_OK)
        return e->code;
    return rdt->enable_monitoring ? edits_put(section, "enableMonitoring", json_true(), e) : ERR_OK;
}

enum err_code rt_edits_put(const struct rt_host *host, const struct rt_config *c, json_t *spec, struct err *e)
{
    json_t *linux_section = json_object_get(spec, "linux");

    if (c->edits == NULL)
        return ERR_OK;
    if (put_hooks(c->edits, spec, e) != ERR_OK || put_net_devices(host, c->edits, linux_section, e) != ERR_OK)
        return e->code;
    return put_rdt(host, c->edits, linux_section, e);
}

/* ---- mounts ---- */

static bool is_replaced(const struct rt_edits *edits, const char *destination, size_t from)
{
    for (size_t i = from; i < edits->n_mounts; i++)
        if (rt_same_path(edits->mounts[i].destination, destination))
            return true;
    return false;
}

enum err_code rt_edits_add_mounts(const struct rt_config *c, struct arena *arena, struct rt_config *ret,
                                  struct err *e)
{
    const struct rt_edits *edits = c->edits;
    struct rt_mount *list;
    size_t n = 0;

    *ret = *c;
    if (edits == NULL || edits->n_mounts == 0)
        return ERR_OK;
    list = arena_alloc(arena, (c->n_mounts + edits->n_mounts) * sizeof(*list));
    if (list == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < c->n_mounts; i++)
        if (!is_replaced(edits, c->mounts[i].destination, 0))
            list[n++] = c->mounts[i];
    for (size_t i = 0; i < edits->n_mounts; i++)
        if (!is_replaced(edits, edits->mounts[i].destination, i + 1))
            list[n++] = (struct rt_mount){ .source = edits->mounts[i].source,
                                           .destination = edits->mounts[i].destination,
                                           .device = true,
                                           .edit = &edits->mounts[i] };
    ret->mounts = list;
    ret->n_mounts = n;
    return ERR_OK;
}

static bool has_option(const struct rt_edit_mount *m, const char *option)
{
    for (size_t i = 0; i < m->n_options; i++)
        if (strcmp(m->options[i], option) == 0)
            return true;
    return false;
}

/* Without a type it can only be a bind mount; runc wants the option then, too. */
bool rt_mount_is_bind(const struct rt_mount *m)
{
    return m->edit == NULL || m->edit->type == NULL || *m->edit->type == '\0' ||
           strcmp(m->edit->type, "bind") == 0 || has_option(m->edit, "bind") || has_option(m->edit, "rbind");
}

json_t *rt_edit_mount_options(const struct rt_mount *m, bool mapped)
{
    const struct rt_edit_mount *edit = m->edit;
    json_t *options = json_array();
    bool ok = options != NULL;

    if (rt_mount_is_bind(m) && !has_option(edit, "bind") && !has_option(edit, "rbind"))
        ok = ok && json_array_append_new(options, json_string("rbind")) == 0;
    for (size_t i = 0; ok && i < edit->n_options; i++) {
        bool map = strcmp(edit->options[i], "idmap") == 0 || strcmp(edit->options[i], "ridmap") == 0;

        if (!map || !mapped) /* the mount is mapped already */
            ok = json_array_append_new(options, json_string(edit->options[i])) == 0;
    }
    if (!ok) {
        json_decref(options);
        return NULL;
    }
    return options;
}
