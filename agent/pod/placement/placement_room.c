/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/settings.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/placement/internal.h"

#include <stdlib.h>
#include <string.h>

#define SYS_DIR "/sys"

/* ---- begin ---- */

/* The processors that systemReserved and kubeReserved keep back, in whole numbers. */
static unsigned reserved_count(const struct node_options *o)
{
    int64_t milli = o->resources.system.cpu_milli + o->resources.kube.cpu_milli;

    return (unsigned)((milli + 999) / 1000);
}

static enum err_code begin_cpus(struct node *n, const struct pl_settings *s, struct err *e)
{
    struct placement_node *part = placement_node(n);
    struct cpus reserved = { 0 };
    struct pl_cpu_options o;

    if (s->reserved_cpus != NULL &&
        cpus_parse(&reserved, s->reserved_cpus, "reservedSystemCPUs", e) != ERR_OK)
        return e->code;
    if (reserved_count(&n->o) == 0)
        return err_set(e, ERR_INVALID,
                       "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be "
                       "greater than zero");
    if (pl_cpu_options_read(s->cpu_options, s->n_cpu_options, s->alpha, &o, e) != ERR_OK ||
        pl_cpu_options_check(&o, part->machine, part->topology.policy, e) != ERR_OK)
        return err_wrap(e, "cpuManagerPolicyOptions");
    part->cpu = true;
    part->isolates = s->isolates;
    return pl_cpu_manager_init(&part->cpus, part->machine, &o, reserved_count(&n->o), &reserved, e);
}

/* The node's reservation of memory, as Node Allocatable has it. Huge pages are never reserved. */
static struct pl_reservation whole_memory(const struct node_options *o)
{
    const struct api_threshold *t = &o->resources.evict_memory;
    int64_t evict = t->bytes != 0 ? t->bytes : (int64_t)((double)o->memory_bytes * t->share);

    return (struct pl_reservation){ .type = "memory",
                                    .amount = quantity_from_int(o->resources.system.memory_bytes +
                                                                    o->resources.kube.memory_bytes + evict,
                                                                QUANTITY_BINARY_SI) };
}

static enum err_code begin_memory(struct node *n, const struct pl_settings *s, struct err *e)
{
    struct placement_node *part = placement_node(n);
    struct pl_reservation whole = whole_memory(&n->o);
    struct pl_reserved reserved[PL_RESERVED_MAX];
    size_t n_reserved;

    if (pl_reserve(part->machine, s->reserved, s->n_reserved, &whole, 1, reserved, &n_reserved, e) != ERR_OK)
        return err_wrap(e, "reservedMemory");
    part->memory = true;
    return pl_memory_manager_init(&part->memories, part->machine, reserved, n_reserved, e);
}

/* The pods' allocations are in the files that were just read. */
static void note_recovered(struct node *n)
{
    pods_each (n, p)
        placement_of(p)->generation = 1;
    placement_node(n)->generation = 1;
    placement_changed(n); /* a file that did not exist */
}

enum err_code placement_begin(struct node *n, struct err *e)
{
    struct placement_node *part = placement_node(n);
    const struct pl_settings *s = n->o.placement;

    if (s == NULL || (!s->cpu_static && !s->memory_static &&
                      strcmp(s->topology_policy, pl_policy_name(PL_POLICY_NONE)) == 0))
        return ERR_OK;
    part->machine = calloc(1, sizeof(*part->machine));
    if (part->machine == NULL)
        return err_nomem(e);
    if (pl_machine_read(part->machine, SYS_DIR, e) != ERR_OK)
        return err_wrap(e, "cpuManagerPolicy, memoryManagerPolicy, topologyManagerPolicy");
    if (pl_topology_read(s->topology_policy, s->topology_scope, s->topology_options, s->n_topology_options,
                         part->machine->n_nodes, part->machine->distances_known, &part->topology,
                         e) != ERR_OK)
        return err_wrap(e, "topologyManagerPolicy");
    if ((s->cpu_static && begin_cpus(n, s, e) != ERR_OK) ||
        (s->memory_static && begin_memory(n, s, e) != ERR_OK) || placement_read(n, e) != ERR_OK)
        return e->code;
    note_recovered(n);
    return ERR_OK;
}

/* ---- for the other rooms ---- */

bool placement_is_on(const struct node *n)
{
    return placement_node(n)->machine != NULL;
}

const struct pl_machine *placement_machine(const struct node *n)
{
    return placement_node(n)->machine;
}

const struct pl_cpu_manager *placement_cpus(const struct node *n)
{
    return placement_node(n)->cpu ? &placement_node(n)->cpus : NULL;
}

bool placement_isolates(const struct node *n)
{
    return placement_node(n)->cpu && placement_node(n)->isolates;
}

const struct pl_memory_manager *placement_memory(const struct node *n)
{
    return placement_node(n)->memory ? &placement_node(n)->memories : NULL;
}

const struct pl_topology *placement_topology(const struct node *n)
{
    return &placement_node(n)->topology;
}

struct placement_counts placement_counts(const struct node *n)
{
    return placement_node(n)->counts;
}

uint64_t placement_generation(const struct node *n)
{
    return placement_node(n)->generation;
}

/* ---- its place among the rooms ---- */

static void placement_open(struct node *n)
{
    uv_timer_init(n->o.loop, &placement_node(n)->timer);
    placement_node(n)->timer.data = n;
}

static bool placement_busy(const struct node *n)
{
    return op_live(&placement_node(n)->work.op);
}

static void placement_free(struct node *n)
{
    struct placement_node *part = placement_node(n);

    pl_cpu_manager_done(&part->cpus);
    pl_memory_manager_done(&part->memories);
    free(part->machine);
    for (size_t i = 0; i < 2; i++) {
        free(part->files[i].path);
        free(part->files[i].text);
    }
    rooms_close_handle(n, (uv_handle_t *)&part->timer);
}

const struct room placement_room = {
    .id = ROOM_PLACEMENT,
    .name = "placement",
    .node = { .size = sizeof(struct placement_node),
              .open = placement_open,
              .busy = placement_busy,
              .cancel = placement_write_last,
              .free = placement_free },
    .pod = { .size = sizeof(struct placement_pod) },
};
