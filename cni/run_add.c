/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/run.h"

#include "base/log.h"
#include "cni/plugin/result.h"

#include <string.h>

bool cni_note_used(struct cni *c, const struct cni_list *list)
{
    bool ok = strs_add_once(&c->used_networks, list->name);

    for (size_t i = 0; i < cni_list_size(list); i++) {
        const char *bridge = cni_plugin_bridge(cni_list_plugin(list, i));

        ok = ok && (bridge == NULL || strs_add_once(&c->used_bridges, bridge));
    }
    return ok;
}

enum err_code cni_add_begin(struct cni_run *r, struct err *e)
{
    struct cni_entry old;
    const char *why = "";
    json_t *declared;

    if (cni_default_network(r->c, &why) == NULL)
        return err_set(e, ERR_UNAVAILABLE, "%s", why);
    if (cni_find(r->c, r->container_id, r->ifname, &old, e) == ERR_OK) {
        err_set(e, ERR_PRECONDITION, "container %s already has %s, at least partly: DEL must come first",
                r->container_id, r->ifname);
        cni_entry_done(&old);
        return e->code;
    }
    if (e->code != ERR_NOT_FOUND)
        return e->code;
    *e = (struct err){ 0 };

    /* only plugins that declare the capability may get its arguments */
    declared = cni_list_declared(&r->c->networks.lists[0], r->capability_args);
    if (declared == NULL)
        return err_nomem(e);
    json_decref(r->capability_args);
    r->capability_args = declared;
    r->entry = (struct cni_entry){
        .list = r->c->networks.lists[0],
        .container_id = r->container_id,
        .ifname = r->ifname,
        .netns = r->netns,
        .args = r->args,
        .capability_args = r->capability_args,
        .boot_id = r->c->boot_id,
    };
    json_incref(r->entry.list.conf);
    if (!cni_note_used(r->c, &r->entry.list))
        return err_nomem(e);
    return cni_cache_write(r->c->cache_fd, &r->entry, e);
}

void cni_add_not_run(struct cni_run *r)
{
    struct err e = { 0 };

    r->entry.n_unrun = cni_list_size(&r->entry.list) - r->done;
    if (cni_cache_write(r->c->cache_fd, &r->entry, &e) !=
        ERR_OK) /* without this entry DEL still calls the plugin */
        log_debug("cannot record that a plugin could not be executed", F_STR("containerID", r->container_id),
                  F_ERR(&e));
}

enum err_code cni_add_proceed(struct cni_run *r, json_t *result, struct err *e)
{
    struct cni_result addresses = { 0 };
    int version = r->entry.list.version;
    json_t *converted;
    bool same; /* a chained plugin passes on its input: the entry has it already */

    if (cni_result_convert(&converted, result, version, version, e) != ERR_OK)
        return e->code;
    r->entry.complete = r->done + 1 == cni_list_size(&r->entry.list);
    same = !r->entry.complete && r->entry.result != NULL && json_equal(r->entry.result, converted);
    json_decref(r->entry.result);
    r->entry.result = converted;
    if (r->entry.complete && cni_result_addresses(&addresses, converted, version, r->ifname, e) != ERR_OK)
        return e->code;
    if (r->entry.complete && cni_check_known(r))
        r->entry.check = "";
    if (!same && cni_cache_write(r->c->cache_fd, &r->entry, e) != ERR_OK)
        return e->code;
    r->done++;
    r->o->result = addresses;
    r->o->checked = r->entry.check != NULL;
    return ERR_OK;
}
