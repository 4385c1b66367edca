/* SPDX-License-Identifier: Apache-2.0 */
/* place - pods' requests to the managers, and the results of their containers. */
#include "agent/pod/placement/internal.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>

/* The requests of a pod's containers. */
struct wants {
    struct pl_cpu_want *cpu;
    struct pl_memory_want *memory;
};

static void wants_done(struct wants *w)
{
    free(w->cpu);
    free(w->memory);
}
#define wants_auto __attribute__((cleanup(wants_done))) struct wants

static enum err_code wants_of(const struct pod *p, struct wants *ret, struct err *e)
{
    ret->cpu = calloc(p->n_ctrs + 1, sizeof(*ret->cpu));
    ret->memory = calloc(p->n_ctrs + 1, sizeof(*ret->memory));
    if (ret->cpu == NULL || ret->memory == NULL)
        return err_nomem(e);
    placement_cpu_wants(p, ret->cpu);
    placement_memory_wants(p, ret->memory);
    return ERR_OK;
}

bool placement_wants(const struct pod *p)
{
    const struct placement_node *part = placement_node(p->node);
    wants_auto w = { 0 };

    if (part->machine == NULL)
        return false;
    if (wants_of(p, &w, ERR_IGNORED) != ERR_OK)
        return true; /* the allocation reports it */
    for (size_t i = 0; i < p->n_ctrs; i++)
        if ((part->cpu && w.cpu[i].n > 0) || (part->memory && w.memory[i].n > 0))
            return true;
    return false;
}

enum err_code placement_hints(const struct pod *p, size_t i, bool whole, struct pl_hints *v, size_t *n,
                              struct err *e)
{
    const struct placement_node *part = placement_node(p->node);
    wants_auto w = { 0 };

    if (wants_of(p, &w, e) != ERR_OK)
        return e->code;
    if (part->cpu && (whole ? pl_cpu_pod_hints(&part->cpus, w.cpu, p->n_ctrs, &v[*n], e)
                            : pl_cpu_hints(&part->cpus, &w.cpu[i], &v[*n], e)) != ERR_OK)
        return e->code;
    *n += part->cpu;
    if (part->memory && (whole ? pl_memory_pod_hints(&part->memories, w.memory, p->n_ctrs, &v[*n], e)
                               : pl_memory_hints(&part->memories, &w.memory[i], &v[*n], e)) != ERR_OK)
        return e->code;
    *n += part->memory;
    return ERR_OK;
}

static enum err_code allocate_cpus(struct placement_node *part, const struct pl_cpu_want *w,
                                   const struct pl_hint *hint, struct err *e)
{
    part->counts.cpu_requests += w->n > 0;
    if (pl_cpu_allocate(&part->cpus, w, hint->nodes, e) != ERR_OK)
        part->counts.cpu_errors++;
    if (part->cpus.o.full_cores && w->n > 0) {
        part->counts.cores_whole += e->code == ERR_OK;
        part->counts.cores_split += e->code == ERR_INVALID;
    }
    return e->code;
}

static enum err_code allocate_memory(struct placement_node *part, const struct pl_memory_want *v, size_t i,
                                     const struct pl_hint *hint, struct err *e)
{
    part->counts.memory_requests += v[i].n > 0;
    if (pl_memory_allocate(&part->memories, v, i, hint, e) != ERR_OK)
        part->counts.memory_errors++;
    return e->code;
}

enum err_code placement_allocate(struct pod *p, size_t i, const struct pl_hint *hint, struct err *e)
{
    struct placement_node *part = placement_node(p->node);
    wants_auto w = { 0 };

    if (wants_of(p, &w, e) != ERR_OK || (part->cpu && allocate_cpus(part, &w.cpu[i], hint, e) != ERR_OK) ||
        (part->memory && allocate_memory(part, w.memory, i, hint, e) != ERR_OK))
        return e->code;
    if ((part->cpu && w.cpu[i].n > 0) || (part->memory && w.memory[i].n > 0)) {
        placement_changed(p->node);
        placement_of(p)->generation = part->generation;
    }
    return ERR_OK;
}

/* ---- release ---- */

/* All entries of this pod in the files, also of containers that it no longer has. */
static bool release_uid(struct placement_node *part, const char *uid)
{
    const struct pl_cpu_state *c = &part->cpus.state;
    const struct pl_memory_state *m = &part->memories.state;
    bool had = false;

    for (size_t i = c->n; i-- > 0;)
        if (strcmp(c->v[i].owner.pod, uid) == 0) {
            str_auto name = strdup(c->v[i].owner.container);

            if (name != NULL)
                pl_cpu_release(&part->cpus, uid, name);
            had = true;
        }
    for (size_t i = m->n; i-- > 0;)
        if (strcmp(m->v[i].owner.pod, uid) == 0) {
            str_auto name = strdup(m->v[i].owner.container);

            if (name != NULL)
                pl_memory_release(&part->memories, uid, name);
            had = true;
        }
    return had;
}

bool placement_release(struct pod *p)
{
    struct placement_node *part = placement_node(p->node);

    if (part->machine == NULL || !release_uid(part, p->uid))
        return false;
    placement_of(p)->generation = 0;
    placement_changed(p->node);
    return true;
}

/* Uids that no pod of this node has. */
static const char *stranger(const struct node *n)
{
    const struct placement_node *part = placement_node(n);

    for (size_t i = 0; i < part->cpus.state.n; i++)
        if (pods_by_uid((struct node *)n, part->cpus.state.v[i].owner.pod) == NULL)
            return part->cpus.state.v[i].owner.pod;
    for (size_t i = 0; i < part->memories.state.n; i++)
        if (pods_by_uid((struct node *)n, part->memories.state.v[i].owner.pod) == NULL)
            return part->memories.state.v[i].owner.pod;
    return NULL;
}

static void release_strangers(struct node *n)
{
    const char *uid;

    while ((uid = stranger(n)) != NULL) {
        str_auto copy = strdup(uid);

        if (copy == NULL)
            return;
        log_info("processors and memory of a pod that is not on this node are released",
                 F_STR("podUID", copy));
        release_uid(placement_node(n), copy);
        placement_changed(n);
    }
}

/* The file was lost, or the policy is new: a running pod gets free processors and memory now. */
static void place_running(struct pod *p)
{
    struct pl_hint any = { 0 };

    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct err e = { 0 };

        if (placement_allocate(p, i, &any, &e) != ERR_OK)
            log_warn("a running container has no exclusive processors or memory", F_STR("pod", p->key),
                     F_STR("containerName", p->ctrs[i]->spec->name), F_ERR(&e));
    }
}

static bool has_all(const struct pod *p)
{
    const struct placement_node *part = placement_node(p->node);
    wants_auto w = { 0 };

    if (wants_of(p, &w, ERR_IGNORED) != ERR_OK)
        return true;
    for (size_t i = 0; i < p->n_ctrs; i++)
        if ((part->cpu && w.cpu[i].n > 0 &&
             pl_cpu_state_find(&part->cpus.state, p->uid, w.cpu[i].container) == NULL) ||
            (part->memory && w.memory[i].n > 0 &&
             pl_memory_state_find(&part->memories.state, p->uid, w.memory[i].container) == NULL))
            return false;
    return true;
}

void placement_sources_ready(struct node *n)
{
    if (placement_node(n)->machine == NULL)
        return;
    release_strangers(n);
    pods_each (n, p)
        if (p->admitted && p->state != POD_TERMINATED && p->state != POD_TERMINATING && !has_all(p))
            place_running(p);
}

/* ---- containers ---- */

bool placement_is_exclusive(const struct ctr *c)
{
    const struct placement_node *part = placement_node(c->pod->node);

    return part->cpu && pl_cpu_state_find(&part->cpus.state, c->pod->uid, c->spec->name) != NULL;
}

bool placement_pod_is_exclusive(const struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (placement_is_exclusive(p->ctrs[i]))
            return true;
    return false;
}

/* The nodes of all blocks; "" if there are none. */
static void nodes_list(const struct pl_memory_entry *x, char ret[256])
{
    uint64_t nodes = 0;
    size_t n = 0;

    ret[0] = '\0';
    for (size_t i = 0; x != NULL && i < x->n; i++)
        nodes |= x->v[i].nodes;
    for (uint64_t left = nodes; left != 0; left &= left - 1)
        n += (size_t)snprintf(ret + n, 256 - n, "%s%d", n > 0 ? "," : "", __builtin_ctzll(left));
}

void placement_lists(const struct ctr *c, char *cpus, char mems[256])
{
    const struct placement_node *part = placement_node(c->pod->node);
    const struct pl_cpu_entry *own;

    cpus[0] = mems[0] = '\0';
    if (part->cpu) {
        own = pl_cpu_state_find(&part->cpus.state, c->pod->uid, c->spec->name);
        cpus_print(own != NULL ? &own->cpus : &part->cpus.state.shared, cpus);
    }
    if (part->memory)
        nodes_list(pl_memory_state_find(&part->memories.state, c->pod->uid, c->spec->name), mems);
}

/* Whether a container that can be resized would request another amount. */
static bool requests_change(const struct pod *p, const struct api_pod *api, const char *resource)
{
    const struct quantity zero = quantity_from_int(0, QUANTITY_DECIMAL_SI);

    for (size_t i = 0; i < p->n_ctrs && p->ctrs[i]->kind != CTR_EPHEMERAL; i++) {
        const struct quantity *now = api_resource_get(&p->ctrs[i]->spec->resources.requests, resource);
        const struct quantity *then =
            api_resource_get(&api_container_at(&api->spec, i)->resources.requests, resource);

        if (p->ctrs[i]->kind != CTR_INIT &&
            quantity_cmp(now != NULL ? now : &zero, then != NULL ? then : &zero) != 0)
            return true;
    }
    return false;
}

const char *placement_refuses_resize(const struct pod *p, const struct api_pod *api)
{
    const struct placement_node *part = placement_node(p->node);

    if (p->api->qos != API_QOS_GUARANTEED)
        return NULL;
    if (part->cpu && requests_change(p, api, "cpu"))
        return "Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\"";
    if (part->memory && requests_change(p, api, "memory"))
        return "Resize is infeasible for Guaranteed Pods alongside Memory Manager policy \"Static\"";
    return NULL;
}
