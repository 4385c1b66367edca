/* SPDX-License-Identifier: Apache-2.0 */
/* gc - GC of all networks that support it, exclusively; see cni.h. */
#include "cni/internal.h"

#include "base/scope.h"
#include "cni/plugin/each.h"
#include "cni/plugin/names.h"

#include <string.h>

static void next_network(struct cni_gc *g);

static void begin_first(struct cni *c)
{
    struct cni_gc *g = TAILQ_FIRST(&c->gcs);

    if (g == NULL || c->alone || c->n_live > 0 || c->n_held > 0 || cni_ask_holds(c))
        return;
    c->alone = true;
    g->running = true;
    next_network(g);
}

static void gc_over(struct cni_gc *g, const struct err *e)
{
    struct cni *c = g->c;

    TAILQ_REMOVE(&c->gcs, g, link);
    if (g->running)
        c->alone = false;
    g->running = false;
    free(take_ptr(&g->each));
    strs_done(&g->living);
    op_finish(&g->op, e->code != ERR_OK ? e : NULL);
    begin_first(c);
    cni_run_next(c);
}

static void gc_on_network(struct op *op, const struct err *result)
{
    struct cni_gc *g = op->owner;

    free(take_ptr(&g->each));
    if (result->code != ERR_OK && g->first.code == ERR_OK)
        g->first = *result;
    if (g->op.why.code != ERR_OK)
        gc_over(g, result);
    else
        next_network(g);
}

struct valid {
    const char *network;
    json_t *list;
    bool ok;
};

static bool gc_add(struct valid *v, const char *container_id, const char *ifname)
{
    json_auto_t *one = json_pack("{s:s, s:s}", "containerID", container_id, "ifname", ifname);
    const json_t *have;
    size_t i;

    json_array_foreach (v->list, i, have) {
        if (json_equal(have, one))
            return true;
    }
    v->ok = one != NULL && json_array_append(v->list, one) == 0;
    return v->ok;
}

static bool add_valid(const struct cni_entry *entry, void *arg)
{
    struct valid *v = arg;

    return strcmp(entry->list.name, v->network) != 0 || gc_add(v, entry->container_id, entry->ifname);
}

/* Both keys: the second is from the specification's draft, and plugins written for the draft read it. */
static json_t *what_is_valid(const struct cni_gc *g, const char *network, struct err *e)
{
    struct valid v = { .network = network, .list = json_array(), .ok = true };
    struct cni *c = g->c;
    json_t *ret = NULL;

    /* An unreadable entry might be a valid attachment: no GC is better than a wrong one. */
    if (v.list == NULL || cni_cache_each(c->cache_fd, add_valid, &v, e) != ERR_OK) {
        json_decref(v.list);
        if (e->code == ERR_OK)
            err_nomem(e);
        return NULL;
    }
    for (size_t i = 0; v.ok && i < g->living.n; i++)
        gc_add(&v, g->living.v[i],
               g->ifname); /* the network was in the lost entry, so any network may have the attachment */
    if (v.ok)
        ret = json_pack("{s:O, s:O}", "cni.dev/valid-attachments", v.list, "cni.dev/attachments", v.list);
    json_decref(v.list);
    if (ret == NULL)
        err_nomem(e);
    return ret;
}

static void next_network(struct cni_gc *g)
{
    struct cni *c = g->c;
    struct err e = { 0 };

    while (g->next < c->networks.n) {
        const struct cni_list *list = &c->networks.lists[g->next++];
        json_auto_t *more = NULL;

        if (list->version < CNI_V(1, 1, 0) || list->disable_gc)
            continue;
        more = what_is_valid(g, list->name, &e);
        g->each = more != NULL ? calloc(1, sizeof(*g->each)) : NULL;
        if (g->each == NULL) {
            if (e.code == ERR_OK)
                err_nomem(&e);
            gc_over(g, &e);
            return;
        }
        g->n_networks++;
        cni_each_start(g->each,
                       &(struct cni_each_call){ .verb = CNI_GC,
                                                .list = list,
                                                .more = more,
                                                .bin_dirs = strs_list(&c->bin_dirs),
                                                .cgroup_fd = c->cgroup_fd,
                                                .cgroup_procs = c->cgroup_procs,
                                                .deadline_ms = CNI_GC_DEADLINE_MS },
                       c->loop, gc_on_network, g);
        return;
    }
    gc_over(g, &g->first);
}

static void abort_gc(struct op *op)
{
    struct cni_gc *g = container_of(op, struct cni_gc, op);
    struct err e = { 0 };

    if (g->each != NULL)
        op_cancel(&g->each->op);
    else
        gc_over(g, &e); /* this GC was still waiting */
}

void cni_gc_start(struct cni_gc *g, struct cni *c, const char *const *living, const char *ifname,
                  op_done_fn done, void *owner)
{
    struct err e = { 0 };

    *g = (struct cni_gc){ .c = c };
    snprintf(g->ifname, sizeof(g->ifname), "%s", ifname);
    op_init(&g->op, c->loop, "cni gc of all networks", 0, abort_gc, done, owner);
    TAILQ_INSERT_TAIL(&c->gcs, g, link);
    for (; *living != NULL; living++)
        if (!strs_add(&g->living, *living)) {
            err_nomem(&e);
            gc_over(g, &e);
            return;
        }
    c->idle = begin_first;
    begin_first(c);
}
