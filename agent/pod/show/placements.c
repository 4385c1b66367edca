/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/placements.h"

#include "agent/pod/limits/isolation.h"
#include "agent/pod/placement/placement.h"

#include <string.h>

struct map { /* of one NUMA node */
    struct node *n;
    const struct pl_cpu_manager *cpus;      /* NULL: not static */
    const struct pl_memory_manager *memory; /* NULL: not Static */
    unsigned node;
    struct cpus here; /* the processors of this node */
    json_t *parts;    /* borrowed */
    bool failed;
};

/* ---- parts ---- */

static void add_cpus(json_t *part, const struct map *m, const struct cpus *all)
{
    struct cpus some = cpus_and(all, &m->here);
    char text[CPUS_TEXT_SIZE];

    if (cpus_is_empty(&some))
        return;
    cpus_print(&some, text);
    json_object_set_new(part, "cpus", json_string(text));
}

static void add_memory(json_t *part, uint64_t bytes, uint64_t nodes)
{
    json_t *list = json_array();

    for (uint64_t left = nodes; left != 0; left &= left - 1)
        json_array_append_new(list, json_integer(__builtin_ctzll(left)));
    json_object_set_new(part, "memory", json_integer((json_int_t)bytes));
    json_object_set_new(part, "memoryNodes", list);
}

/* A part without processors and memory on this node is left out. */
static void add_part(struct map *m, json_t *part, const char *role)
{
    if (part == NULL)
        m->failed = true;
    else if (json_object_get(part, "cpus") == NULL && json_object_get(part, "memory") == NULL)
        json_decref(part);
    else if (json_object_set_new(part, "role", json_string(role)) != 0 ||
             json_array_append_new(m->parts, part) != 0)
        m->failed = true;
}

static const struct pl_table *memory_of(const struct map *m)
{
    const struct pl_cell *cell = m->memory != NULL ? pl_memory_cell(&m->memory->state, m->node) : NULL;

    return cell != NULL ? pl_memory_table(cell, "memory") : NULL;
}

static void add_reserved(struct map *m)
{
    const struct pl_table *memory = memory_of(m);
    json_t *part = json_object();

    if (m->cpus != NULL)
        add_cpus(part, m, &m->cpus->reserved);
    if (memory != NULL && memory->system_reserved > 0)
        add_memory(part, memory->system_reserved, 1ull << m->node);
    add_part(m, part, "Reserved");
}

/* The reserved processors are shared, too, unless only the system may run there; they are shown once. */
static void add_shared(struct map *m)
{
    const struct pl_table *memory = memory_of(m);
    json_t *part = json_object();

    if (m->cpus != NULL) {
        struct cpus shared = cpus_without(&m->cpus->state.shared, &m->cpus->reserved);

        add_cpus(part, m, &shared);
    }
    if (memory != NULL)
        add_memory(part, memory->free, 1ull << m->node);
    add_part(m, part, "Shared");
}

/* "isolated": whether the kernel leaves its processors to it alone; nothing without isolateExclusiveCPUs. */
static void add_isolation(json_t *part, const struct ctr *c)
{
    const char *why;
    enum isolation state = isolation_of(c, &why);

    if (state == ISOLATION_NONE || json_object_get(part, "cpus") == NULL)
        return;
    json_object_set_new(part, "isolated", json_boolean(state == ISOLATION_DONE));
    if (state == ISOLATION_FAILED)
        json_object_set_new(part, "notIsolated", json_string(why));
}

static void add_container(struct map *m, const struct pod *p, const struct ctr *c)
{
    const struct pl_cpu_entry *own =
        m->cpus != NULL ? pl_cpu_state_find(&m->cpus->state, p->uid, c->spec->name) : NULL;
    const struct pl_memory_entry *blocks =
        m->memory != NULL ? pl_memory_state_find(&m->memory->state, p->uid, c->spec->name) : NULL;
    json_t *part;

    if (own == NULL && blocks == NULL)
        return;
    part = json_pack("{s:{s:s, s:s, s:s}, s:s}", "pod", "namespace", p->api->meta.namespace, "name",
                     p->api->meta.name, "uid", p->uid, "container", c->spec->name);
    if (own != NULL)
        add_cpus(part, m, &own->cpus);
    add_isolation(part, c);
    for (size_t i = 0; blocks != NULL && i < blocks->n; i++)
        if (strcmp(blocks->v[i].type, "memory") == 0 && (blocks->v[i].nodes >> m->node & 1) != 0)
            add_memory(part, blocks->v[i].size, blocks->v[i].nodes);
    add_part(m, part, "Exclusive");
}

/* ---- nodes ---- */

static json_t *map_of(struct node *n, const struct pl_node *node)
{
    struct map m = { .n = n, .cpus = placement_cpus(n), .memory = placement_memory(n), .node = node->id };
    const struct pl_machine *machine = placement_machine(n);
    json_t *ret =
        json_pack("{s:i, s:I, s:[]}", "node", (int)node->id, "memory", (json_int_t)node->memory, "parts");

    if (ret == NULL)
        return NULL;
    m.here = pl_cpus_on(machine, &machine->cpus, 1ull << node->id);
    m.parts = json_object_get(ret, "parts");
    add_reserved(&m);
    pods_each (n, p)
        for (size_t i = 0; i < p->n_ctrs; i++)
            add_container(&m, p, p->ctrs[i]);
    add_shared(&m);
    if (!m.failed)
        return ret;
    json_decref(ret);
    return NULL;
}

json_t *placements_json(struct node *n)
{
    const struct pl_machine *machine = placement_machine(n);
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && machine != NULL && i < machine->n_nodes; i++)
        if (json_array_append_new(list, map_of(n, &machine->node[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}
