/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align - the input of a choice: the resource, the devices that the container may use again, and the NUMA
 * nodes to align to. With the scope "container" the hints of a container are made when its turn comes, as in
 * kubelet, so the devices of the containers before it are taken into account.
 */
#include "agent/pod/device/allocation.h"
#include "agent/pod/device/internal.h"
#include "agent/pod/placement/placement.h"

#include <stdlib.h>
#include <string.h>

/* choose.h: a forgotten resource is treated like one that was never offered. */
const struct dp_resource *allocation_resource(const struct allocation *a, const char *name)
{
    const struct dp_resource *r = dp_inventory_find(allocation_node(a)->inventory, name);

    return r != NULL && r->provider == NULL && r->forgotten ? NULL : r;
}

/* ---- devices that a container may use again ---- */

enum err_code allocation_reusable(const struct allocation *a, const struct device_want *w, struct strs *ret,
                                  struct err *e)
{
    const struct pod *p = a->p;
    mem_auto struct dp_predecessor *before = calloc(w->ctr + 1, sizeof(*before));

    if (before == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < w->ctr; i++)
        before[i] = (struct dp_predecessor){ .container = p->ctrs[i]->spec->name,
                                             .reusable = p->ctrs[i]->kind == CTR_INIT };
    return dp_reusable(allocation_node(a)->holdings, p->uid, w->resource, before, w->ctr, ret, e);
}

/* ---- NUMA nodes ---- */

/* `whole`: for the sum of all containers. Adds nothing if the resource has no provider. */
static enum err_code add_hints(const struct allocation *a, const struct device_want *w, bool whole,
                               struct dp_hints *list, size_t *n, struct err *e)
{
    struct dp_wish wish = { .pod_uid = a->p->uid,
                            .container = whole ? NULL : allocation_ctr(a, w)->spec->name,
                            .count = whole ? device_wants_sum(a->p, a->v, a->n, w->resource) : w->count };
    const struct dp_resource *r = allocation_resource(a, w->resource);
    struct strs reusable = { 0 };

    if (r == NULL || r->provider == NULL)
        return ERR_OK;
    if (whole || allocation_reusable(a, w, &reusable, e) == ERR_OK) {
        wish.reusable = strs_list(&reusable);
        wish.n_reusable = reusable.n;
        dp_hints_make(&allocation_node(a)->machine, r, allocation_node(a)->holdings, &wish, &list[(*n)++]);
    }
    strs_done(&reusable);
    return e->code;
}

static bool seen_before(const struct device_want *v, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(v[k].resource, v[i].resource) == 0)
            return true;
    return false;
}

/* The hints of a container's devices, or of all devices of the pod; n of them. */
static enum err_code device_hints(const struct allocation *a, size_t ctr, struct dp_hints *list, size_t *n,
                                  struct err *e)
{
    bool whole = placement_topology(a->p->node)->pod_scope;

    for (size_t i = 0; i < a->n; i++)
        if ((whole ? !seen_before(a->v, i) : a->v[i].ctr == ctr) &&
            add_hints(a, &a->v[i], whole, list, n, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* ---- devices with processors and memory ---- */

/* Bit i of an index is the i-th node of the machine. */
static enum err_code convert(const struct dp_machine *m, const struct dp_hints *h, struct pl_hints *ret,
                             struct err *e)
{
    unsigned all = (1u << __builtin_popcountll(m->nodes)) - 1;

    ret->any = h->any;
    for (unsigned set = 1; set <= all && !h->any; set++) {
        uint64_t nodes = 0;
        unsigned bits = set;

        if (h->v[set] == DP_HINT_NO)
            continue;
        for (uint64_t left = m->nodes; left != 0; left &= left - 1, bits >>= 1)
            nodes |= (bits & 1) != 0 ? left & -left : 0;
        if (pl_hints_add(ret, nodes, e) != ERR_OK)
            return e->code;
        ret->v[ret->n - 1].preferred = h->v[set] == DP_HINT_PREFERRED;
    }
    return ERR_OK;
}

static enum err_code merge_all(const struct allocation *a, size_t ctr, const struct dp_hints *devices,
                               size_t n_devices, struct pl_hint *ret, struct err *e)
{
    const struct node *node = a->p->node;
    mem_auto struct pl_hints *v = calloc(n_devices + PLACEMENT_HINTS, sizeof(*v));
    size_t n = 0;

    if (v == NULL)
        return err_nomem(e);
    for (; n < n_devices && e->code == ERR_OK; n++)
        ERR_IGNORE(convert(&allocation_node(a)->machine, &devices[n], &v[n], e));
    if (e->code == ERR_OK &&
        placement_hints(a->p, ctr, placement_topology(node)->pod_scope, v, &n, e) == ERR_OK)
        ERR_IGNORE(pl_merge(placement_machine(node), placement_topology(node), v, n, ret, e));
    for (size_t i = 0; i < n_devices + PLACEMENT_HINTS; i++)
        pl_hints_done(&v[i]);
    return e->code;
}

static enum err_code merge(const struct allocation *a, size_t ctr, const struct dp_hints *list, size_t n,
                           struct err *e)
{
    struct device_pod *part = device_of(a->p);
    struct pl_hint best = { 0 };

    if (merge_all(a, ctr, list, n, &best, e) != ERR_OK)
        return e->code;
    part->has_hint = best.nodes != 0;
    part->numa = best.nodes;
    part->hint_preferred = best.preferred;
    return ERR_OK;
}

/* As in kubelet, only the policy that guarantees an alignment is counted. */
static void count_alignment(const struct allocation *a, enum err_code result)
{
    struct admissions *counts = &device_node(a->p->node)->admissions;

    if (placement_topology(a->p->node)->policy != PL_POLICY_SINGLE_NODE)
        return;
    counts->aligned += result == ERR_OK;
    counts->unaligned += result == ERR_PRECONDITION;
}

enum err_code allocation_align(const struct allocation *a, size_t ctr, struct err *e)
{
    struct device_pod *part = device_of(a->p);
    const struct pl_topology *t = placement_topology(a->p->node);
    mem_auto struct dp_hints *list = NULL;
    size_t n = 0;

    if (t->policy == PL_POLICY_NONE)
        return ERR_OK;
    if (part->hint_of != 0 && (t->pod_scope || part->hint_of == ctr + 1))
        return ERR_OK;
    list = calloc(a->n + 1, sizeof(*list));
    if (list == NULL)
        return err_nomem(e);
    if (device_hints(a, ctr, list, &n, e) != ERR_OK)
        return e->code;
    count_alignment(a, merge(a, ctr, list, n, e));
    if (e->code != ERR_OK) {
        if (e->code == ERR_PRECONDITION)
            a->failure->reason = "TopologyAffinityError";
        return e->code;
    }
    part->hint_of = ctr + 1;
    return ERR_OK;
}
