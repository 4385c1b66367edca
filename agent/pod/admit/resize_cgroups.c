/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of a pod being resized: the order of writes, and obstacles to them. */
#include "agent/pod/admit/internal.h"
#include "agent/pod/admit/resize.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/limits/cpu_memory.h"
#include "agent/pod/limits/ctr_limits.h"
#include "agent/pod/limits/limits.h"
#include "base/clock.h"

#include <string.h>

static bool is_live(const struct ctr *c)
{
    return c->state == CTR_RUNNING;
}

static bool resize_cgroups_differs(const struct ctr *c)
{
    struct cpu_memory wanted = cpu_memory_of_container(c);

    return !cpu_memory_same(&c->cur.sizes, &wanted);
}

/* Writes the pod's own limits, not below *keep. */
static enum err_code write_pod(struct pod *p, const struct cpu_memory *keep, struct err *e)
{
    struct cpu_memory target = cpu_memory_of_pod(p->api);

    if (resources_pod_cgroup(p, keep, e) == ERR_OK) {
        admit_of(p)->sizes = keep->known ? cpu_memory_widest(&target, keep) : target;
        p->record_dirty = true;
    }
    return e->code;
}

enum err_code resize_pod_cgroup(struct pod *p, struct err *e)
{
    struct admit_pod_part *admit = admit_of(p);
    struct cpu_memory target = cpu_memory_of_pod(p->api), before = admit_of(p)->sizes;
    bool cut_off = before.known && !cpu_memory_same(&before, &target);

    for (size_t i = 0; i < p->n_ctrs; i++)
        cut_off = cut_off ||
                  (is_live(p->ctrs[i]) && p->ctrs[i]->cur.sizes.known && resize_cgroups_differs(p->ctrs[i]));
    if (cut_off && !admit->resize.under_way) {
        admit->resize.under_way = true;
        admit->resize.since_ns = clock_wall_ns();
    }
    return write_pod(p, &before, e);
}

static enum err_code write_ctr(struct ctr *c, struct err *e)
{
    struct node *n = c->pod->node;
    struct rt_identity identity = { 0 };
    struct ctr_limits l;
    struct cg_limits g = CG_LIMITS_NONE;

    if (presence_is_unknown(rt_identity(n->rt, c->cur.id, &identity, e)))
        return e->code;
    if (identity.cgroup_path[0] == '\0')
        return err_set(e, ERR_NOT_FOUND, "container %s: its cgroup is not known", c->spec->name);
    ctr_limits_of(c, &l);
    g.cpu_shares = l.cpu_shares;
    g.cpu_period_us = l.cpu_period_us;
    g.cpu_quota_us = l.cpu_quota_us;
    g.memory_max = l.memory_max;
    g.memory_min = l.memory_min;
    g.memory_low = l.memory_low;
    g.oom_group = l.oom_group;
    if (cg_resize(n->o.cgroups, identity.cgroup_path, &g, n->o.resources.memory_qos ? l.memory_high : -1,
                  e) != ERR_OK)
        return err_wrap(e, "container %s", c->spec->name);
    c->cur.sizes = cpu_memory_of_container(c);
    c->pod->record_dirty = true;
    return ERR_OK;
}

/* ---- memory that is in use ---- */

/* *ret: 0 if the limit is above the current usage. */
static enum err_code resize_cgroups_in_use(struct cg_tree *t, const char *path, int64_t limit, uint64_t *ret,
                                           struct err *e)
{
    *ret = 0;
    if (presence_is_unknown(cg_read_memory(t, path, ret, e)))
        return e->code;
    if (*ret < (uint64_t)limit)
        *ret = 0;
    return ERR_OK;
}

/* In kubelet's words. */
enum err_code resize_memory_refuses(struct pod *p, char *ret, size_t size, struct err *e)
{
    struct cg_tree *t = p->node->o.cgroups;
    struct cpu_memory target = cpu_memory_of_pod(p->api);
    buf_auto b = BUF_INIT(4096);
    char path[512];
    uint64_t used = 0;
    size_t n = 0;
    bool one_ends = false;

    ret[0] = '\0';

    for (size_t i = 0; i < p->n_ctrs; i++)
        one_ends = one_ends || (p->ctrs[i]->replace && ctr_alive(p->ctrs[i]));
    if (!one_ends && admit_of(p)->sizes.known &&
        cpu_memory_shrink(admit_of(p)->sizes.memory_limit, target.memory_limit) &&
        (resources_cgroup_path(p, path, sizeof(path), e) != ERR_OK ||
         resize_cgroups_in_use(t, path, target.memory_limit, &used, e) != ERR_OK))
        return e->code;
    if (used > 0) {
        buf_addf(&b, "attempting to set pod memory limit (%lld) below current usage (%llu)",
                 (long long)target.memory_limit, (unsigned long long)used);
        n++;
    }
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        struct cpu_memory wanted = cpu_memory_of_container(c);
        struct rt_identity identity = { 0 };
        if (!is_live(c) || !c->cur.sizes.known || c->replace ||
            !cpu_memory_shrink(c->cur.sizes.memory_limit, wanted.memory_limit))
            continue;
        if (presence_is_unknown(rt_identity(p->node->rt, c->cur.id, &identity, e)) ||
            (identity.cgroup_path[0] != '\0' &&
             resize_cgroups_in_use(t, identity.cgroup_path, wanted.memory_limit, &used, e) != ERR_OK))
            return e->code;
        if (identity.cgroup_path[0] == '\0' || used == 0)
            continue;
        buf_addf(&b, "%sattempting to set container \"%s\" memory limit (%lld) below current usage (%llu)",
                 n++ > 0 ? ", " : "", c->spec->name, (long long)wanted.memory_limit,
                 (unsigned long long)used);
    }
    if (n > 0)
        snprintf(ret, size,
                 n > 1 ? "cannot decrease memory limits: [%.900s]" : "cannot decrease memory limits: %.900s",
                 b.p);
    return ERR_OK;
}

/* ---- writing ---- */

static bool grows(const struct ctr *c)
{
    struct cpu_memory wanted = cpu_memory_of_container(c);

    return cpu_memory_shrink(wanted.memory_limit, c->cur.sizes.memory_limit) ||
           cpu_memory_shrink(wanted.cpu_limit, c->cur.sizes.cpu_limit) ||
           wanted.cpu_request > c->cur.sizes.cpu_request;
}

/* No instance exists, or is being made, with other sizes than intended. */
bool resize_is_settled(const struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        struct cpu_memory wanted = cpu_memory_of_container(c);
        if (c->state == CTR_MOUNTING || c->state == CTR_CREATING) {
            if (!cpu_memory_same(ctr_building(c), &wanted))
                return false;
        } else if (c->state != CTR_NONE && resize_cgroups_differs(c)) {
            return false;
        }
    }
    return true;
}

enum err_code resize_apply(struct pod *p, struct err *e)
{
    struct cpu_memory before = admit_of(p)->sizes, none = { .known = false };

    if (write_pod(p, &before, e) != ERR_OK)
        return err_wrap(e, "pod");
    for (int growing = 0; growing < 2; growing++) /* shrinking ones first, to make room */
        for (size_t i = 0; i < p->n_ctrs; i++) {
            struct ctr *c = p->ctrs[i];
            if (is_live(c) && !c->replace && resize_cgroups_differs(c) && grows(c) == (growing == 1) &&
                write_ctr(c, e) != ERR_OK)
                return e->code;
        }
    /* a container with more is ending and keeps its part of the pod's until then */
    if (!resize_is_settled(p))
        return ERR_OK;
    if (write_pod(p, &none, e) != ERR_OK)
        return err_wrap(e, "pod");
    resources_qos_update(p->node);
    return ERR_OK;
}

void resize_cgroup_gone(struct pod *p)
{
    admit_of(p)->sizes.known = false;
}
