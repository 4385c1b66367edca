/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpusets - keeps the processors of running containers up to date: the shared pool shrinks when a container
 * gets processors for itself, and grows again when that container has ended. A cpuset is written when the
 * state has changed since the last write, and once after a start, as it may have changed since the create.
 */
#include "agent/pod/core/facts.h"
#include "agent/pod/limits/internal.h"
#include "agent/pod/placement/placement.h"
#include "base/log.h"

#define AGAIN_MS 5000 /* after a write that failed */

static enum err_code write_lists(const struct ctr *c, struct err *e)
{
    struct node *n = c->pod->node;
    struct rt_identity identity = { 0 };
    char cpus[CPUS_TEXT_SIZE], mems[256];

    placement_lists(c, cpus, mems);
    if (presence_is_unknown(rt_identity(n->rt, c->cur.id, &identity, e)))
        return e->code;
    if (identity.cgroup_path[0] == '\0')
        return err_set(e, ERR_NOT_FOUND, "its cgroup is not known");
    return cg_set_cpuset(n->o.cgroups, identity.cgroup_path, cpus[0] != '\0' ? cpus : NULL,
                         mems[0] != '\0' ? mems : NULL, e);
}

static void update(struct ctr *c)
{
    struct limits_ctr *part = c->parts[ROOM_LIMITS];
    uint64_t generation = placement_generation(c->pod->node);
    struct err e = { 0 };

    if (!ctr_alive(c) || (part->cpuset == generation && strcmp(part->cpuset_id, c->cur.id) == 0))
        return;
    if (write_lists(c, &e) != ERR_OK && e.code != ERR_NOT_FOUND) {
        log_warn("cannot set the processors of a container; will retry", F_STR("pod", c->pod->key),
                 F_STR("containerName", c->spec->name), F_ERR(&e));
        pod_wake_at(c->pod, clock_boot_in_ms(AGAIN_MS), "processors of a container are set again");
        return;
    }
    part->cpuset = generation;
    snprintf(part->cpuset_id, sizeof(part->cpuset_id), "%s", c->cur.id);
}

void cpusets_step(struct pod *p)
{
    if ((placement_cpus(p->node) == NULL && placement_memory(p->node) == NULL) || p->node->rt == NULL)
        return;
    for (size_t i = 0; i < p->n_ctrs; i++)
        update(p->ctrs[i]);
}
