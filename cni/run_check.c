/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/run.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/scope.h"
#include "cni/plugin/names.h"

#include <string.h>

/* The plugins' input as far as it affects what their CHECK can see: the network and the kinds of capability
 * arguments. NULL for an attachment with host ports, whose addresses matter, too. */
static char *run_check_kind_of(const struct cni_entry *entry)
{
    buf_auto b = BUF_INIT(4096);
    json_t *value;
    const char *key;

    if (json_object_get(entry->capability_args, "portMappings") != NULL)
        return NULL;
    buf_adds(&b, entry->list.name);
    json_object_foreach (entry->capability_args, key, value)
        buf_addf(&b, " %s", key);
    return b.failed ? NULL : buf_detach(&b);
}

bool cni_check_known(const struct cni_run *r)
{
    str_auto kind = run_check_kind_of(&r->entry);

    return kind != NULL && strs_has(&r->c->checked, kind);
}

void cni_check_judge(struct cni_run *r, struct err *e)
{
    const char *text = e->code != ERR_OK ? e->text : "";
    struct err failed = { 0 };

    if (e->code != ERR_OK &&
        (r->entry.check != NULL ? strcmp(r->entry.check, text) != 0 : r->found != NULL && !r->fresh))
        return;
    if (r->entry.check == NULL || strcmp(r->entry.check, text) != 0) {
        r->entry.check = text;
        if (cni_cache_write(r->c->cache_fd, &r->entry, &failed) != ERR_OK)
            log_debug("cannot record the findings of CHECK", F_STR("containerID", r->container_id),
                      F_ERR(&failed));
    }
    if (e->code == ERR_OK && r->found == NULL && r->done == cni_list_size(&r->entry.list)) {
        str_auto kind = run_check_kind_of(&r->entry);
        if (kind != NULL)
            (void)strs_add_once(&r->c->checked, kind); /* otherwise the next one is checked, too */
    }
    *e = (struct err){ 0 };
}

/* *ret_more false: this list is not to be checked, or its version has no CHECK; that is a success. */
enum err_code cni_check_begin(struct cni_run *r, bool *ret_more, struct err *e)
{
    if (cni_find(r->c, r->container_id, r->ifname, &r->entry, e) != ERR_OK)
        return e->code;
    r->cached = true;
    if (!r->entry.complete)
        return err_set(e, ERR_PRECONDITION, "container %s: the ADD or DEL for %s did not finish",
                       r->container_id, r->ifname);
    if (r->found != NULL) {
        *ret_more = false;
        err_set(e, ERR_UNKNOWN, "%s", r->found);
        cni_check_judge(r, e);
        return e->code;
    }
    *ret_more = r->entry.list.version >= CNI_V(0, 4, 0) && !r->entry.list.disable_check;
    if (*ret_more && r->fresh && r->entry.check == NULL && cni_check_known(r)) {
        *ret_more = false;
        cni_check_judge(r, e);
    }
    return ERR_OK;
}
