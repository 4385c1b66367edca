/* SPDX-License-Identifier: Apache-2.0 */
/* run_del - DEL. The entry is marked incomplete before the DEL begins: if an ADD or DEL was interrupted, the
 * DEL that finally succeeds also removes the rules that the plugins no longer find (masq.h). */
#include "cni/run.h"

#include "base/log.h"
#include "cni/links.h"
#include "cni/plugin/result.h"
#include "cni/veth.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

/* Checks whether the namespace is as ADD left it. It may be a new one after a reboot, or the pod or another
 * program may have removed, renamed or moved the interface or its addresses. Plugins then find less to
 * remove: bridge leaves its masquerading rules behind. */
static void look_inside(struct cni_run *r)
{
    struct cni_links *links = r->netns[0] != '\0' ? calloc(1, sizeof(*links)) : NULL;
    struct cni_result expected = { 0 };

    r->no_interface = r->cut_off = true;
    if (links != NULL && cni_links_read(r->netns, links, ERR_IGNORED) == ERR_OK) {
        r->no_interface = !links->cut && cni_links_find(links, r->ifname) == NULL;
        r->cut_off = r->no_interface || links->cut || (r->cached && !r->entry.complete) ||
                     (r->cached && cni_result_addresses(&expected, r->entry.result, r->entry.list.version,
                                                        r->ifname, ERR_IGNORED) != ERR_OK) ||
                     cni_links_check(links, r->ifname, &expected, ERR_IGNORED) != ERR_OK;
    }
    free(links);
}

/* A plain file instead of a namespace: it was unmounted. Plugins fail on it; "" means that there is no
 * namespace any more. */
static void forget_removed_pin(struct cni_run *r)
{
    struct statfs fs;

    if (r->netns[0] != '\0' && statfs(r->netns, &fs) == 0 && fs.f_type != NSFS_MAGIC)
        r->netns[0] = '\0';
}

/* Finds the next entry to delete; *ret_more false: nothing (more). */
enum err_code cni_del_begin(struct cni_run *r, bool *ret_more, struct err *e)
{
    struct cni *c = r->c;

    *ret_more = true;
    r->done = 0;
    forget_removed_pin(r);
    if (cni_find(c, r->container_id, r->ifname, &r->entry, e) == ERR_OK) {
        r->cached = true;
        r->done = r->entry.n_unrun;
        look_inside(r);
        if (r->entry.complete) {
            r->entry.complete = false;
            if (cni_cache_write(c->cache_fd, &r->entry, e) != ERR_OK) {
                /* A full disk must not prevent a removal; only an interruption from here on would go
                 * unnoticed. */
                log_debug("cannot mark an attachment as being deleted; continuing",
                          F_STR("containerID", r->container_id), F_ERR(e));
                *e = (struct err){ 0 };
            }
        }
        return cni_note_used(c, &r->entry.list) ? ERR_OK : err_nomem(e);
    }
    if (e->code != ERR_NOT_FOUND)
        return e->code;
    *e = (struct err){ 0 };
    if (r->deleted > 0 || c->networks.n == 0) {
        *ret_more = false;
        return ERR_OK;
    }
    /* There is no entry: the current plugins clean up; it is a success if they do not know the attachment. */
    r->entry = (struct cni_entry){
        .list = c->networks.lists[0],
        .container_id = r->container_id,
        .ifname = r->ifname,
        .args = r->args,
        .capability_args = r->capability_args,
    };
    json_incref(r->entry.list.conf);
    look_inside(r);
    return ERR_OK;
}

/* This entry is done. */
static void del_next(struct cni_run *r)
{
    struct err e = { 0 };
    bool more = true;

    /* Otherwise the entry would be found again endlessly, on a read-only disk. */
    if (r->cached && cni_cache_remove(r->c->cache_fd, &r->entry, &e) != ERR_OK) {
        if (e.code == ERR_NOT_FOUND)
            e.code = ERR_UNAVAILABLE;
        cni_run_finish(r, &e);
        return;
    }
    cni_run_drop_entry(r);
    r->deleted++;
    r->cut_off = false;
    if (cni_del_begin(r, &more, &e) != ERR_OK || !more)
        cni_run_finish(r, &e);
    else
        cni_run_plugin(r);
}

static void on_masq_done(struct op *op, const struct err *result)
{
    struct cni_run *r = op->owner;

    if (result->code != ERR_OK || r->o->op.why.code != ERR_OK)
        cni_run_finish(r, result);
    else
        del_next(r);
}

void cni_del_over(struct cni_run *r)
{
    if (r->no_interface)
        cni_veth_remove(r->c, &r->entry);
    if (r->cut_off && cni_masq_wanted(&r->entry.list)) {
        r->o->op.state = RUN_MASQ;
        cni_masq_start(&r->masq, r->c->loop, r->entry.list.name, r->container_id, r->c->cgroup_fd,
                       r->c->cgroup_procs, on_masq_done, r);
    } else {
        del_next(r);
    }
}

/* If a list was broken from the start, its first plugin never returned a result and cannot DEL either. After
 * the list was fixed, the cached text must not block the pod's removal forever: the DEL is tried with the
 * current list. */
bool cni_del_by_todays_list(struct cni_run *r)
{
    struct cni *c = r->c;
    struct err e = { 0 };
    bool more = true;

    if (!r->cached || r->entry.result != NULL || r->entry.complete || r->deleted > 0 || c->networks.n == 0 ||
        json_equal(r->entry.list.conf, c->networks.lists[0].conf))
        return false;
    if (cni_cache_remove(c->cache_fd, &r->entry, &e) != ERR_OK)
        return false;
    cni_run_drop_entry(r);
    r->cut_off = true;
    return cni_del_begin(r, &more, &e) == ERR_OK && more;
}
