/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures - the usage and requests of each pod, read when a decision needs them: kubelet ranks by statistics
 * of up to 15 s ago, and takes those that it does not have yet for 0. Only the resource of the decision is
 * read: with a hundred pods everything takes several times as long as memory alone, while that runs out.
 * Containers are read for victims only: the order is that of pods.
 */
#include "agent/pod/core/facts.h"
#include "agent/pod/eviction/internal.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/usage/usage.h"
#include "base/clock.h"

#include <stdlib.h>

#define KILLED_AFTER_S 2 /* at the earliest, with a grace period: kubelet's minimum */

/* A pod whose memory could not be read in this number of consecutive checks has no figure, and is evicted
 * first. */
#define UNREAD_MAX 3

struct reading {
    struct ev_pod *pod;
    struct ev_container *containers; /* by the index of the pod's containers */
};

/* A figure that cannot be read for a moment counts as before, or as the pod's request, so that no pod is
 * evicted for lack of a figure. */
static void take_memory(const struct pod *p, struct ev_pod *pod, const struct cg_sample *s, bool absent)
{
    struct memory_last *last = &((struct eviction_pod *)p->parts[ROOM_EVICTION])->memory;

    if ((s->parts & CG_PART_MEMORY) != 0 || absent)
        *last = (struct memory_last){ .bytes = s->memory.working_set, .seen = true };
    else
        last->unread++;
    pod->memory_known = last->unread <= UNREAD_MAX;
    pod->memory = last->seen ? last->bytes : pod->memory_request;
}

static void read_cgroup(struct node *n, const struct pod *p, unsigned parts, struct ev_pod *pod)
{
    struct cg_sample s = { 0 };
    bool absent = !p->cgroup_made && p->state != POD_TERMINATING; /* nothing of it runs */

    if (!absent && !usage_read_pod(n, parts, p, &s, &absent))
        s.parts = 0;
    if (parts & CG_PART_MEMORY)
        take_memory(p, pod, &s, absent);
    pod->processes_known = (s.parts & CG_PART_PIDS) != 0 || absent;
    pod->processes = s.pids;
}

static void take_container(const struct usage_row *row, void *arg)
{
    struct ev_container *containers = arg, *c;

    if (row->kind != USAGE_CONTAINER)
        return;
    c = &containers[row->ctr->index];
    c->memory_known = (row->s.parts & CG_PART_MEMORY) != 0;
    c->memory = row->s.memory.working_set;
}

void figures_containers(struct node *n, struct figures *f, const struct ev_pod *pod)
{
    struct usage_walk walk = { 0 };
    struct pod *p = pods_by_uid(n, pod->uid);

    if (p != NULL && p->n_ctrs == pod->n_containers)
        usage_walk(n, &walk, CG_PART_MEMORY, p, take_container,
                   &f->containers[pod->containers - f->containers]);
}

static struct quantity requested(const struct ctr *c, const char *resource)
{
    const struct quantity *q = api_resource_get(&c->spec->resources.requests, resource);

    return q != NULL ? *q : (struct quantity){ 0 };
}

static uint64_t positive(const struct quantity *q)
{
    int64_t v = quantity_value(q);

    return v > 0 ? (uint64_t)v : 0;
}

static struct ev_disk disk_of(struct storage_part part)
{
    return (struct ev_disk){ .bytes = part.bytes, .inodes = part.inodes };
}

static void read_disks(const struct pod *p, struct reading *r)
{
    struct storage_part volumes = storage_usage_volumes(p);

    r->pod->layers_known = true;
    r->pod->rest_known = volumes.known;
    r->pod->volumes = disk_of(volumes);
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct storage_part layer = storage_usage_layer(p, i), log = storage_usage_log(p, i);
        struct ev_container *c = &r->containers[i];

        c->layer_known = layer.known;
        c->log_known = log.known;
        c->layer = disk_of(layer);
        c->log = disk_of(log);
        r->pod->layers_known &= layer.known || !ctr_alive(p->ctrs[i]);
        r->pod->rest_known &= log.known || !ctr_alive(p->ctrs[i]);
    }
}

/* It is not measured any more. */
static void recall_disks(const struct pod *p, struct reading *r)
{
    const struct eviction_pod *v = releasing_of(p);

    if (v == NULL || !v->disk_known || p->n_ctrs == 0)
        return;
    for (size_t i = 0; i < p->n_ctrs; i++)
        r->containers[i].layer = r->containers[i].log = (struct ev_disk){ 0 };
    r->pod->layers_known = r->pod->rest_known = true;
    r->pod->volumes = v->volumes;
    r->containers[0].layer = v->layers;
    r->containers[0].log = v->logs;
    for (size_t i = 0; i < p->n_ctrs; i++)
        r->containers[i].layer_known = r->containers[i].log_known = true;
}

static uint64_t kill_ms(const struct pod *p)
{
    int64_t grace_s = p->kill_now ? 0 : p->grace_seconds < KILLED_AFTER_S ? KILLED_AFTER_S : p->grace_seconds;

    return (uint64_t)(p->state_began.ns / 1000000) + (uint64_t)grace_s * 1000;
}

static void describe(const struct pod *p, struct reading *r)
{
    struct quantity memory = resources_pod_request(p->api, "memory"),
                    storage = resources_pod_request(p->api, "ephemeral-storage");
    const struct quantity *of_pod = api_resource_get(&p->api->spec.resources.requests, "memory");

    *r->pod = (struct ev_pod){ .key = p->key,
                               .uid = p->uid,
                               .priority = p->priority,
                               .critical = preempt_is_critical(p),
                               .ending = p->state == POD_TERMINATING,
                               .kill_ms = p->state == POD_TERMINATING ? kill_ms(p) : UINT64_MAX,
                               .memory_request = positive(&memory),
                               .storage_request = positive(&storage),
                               .memory_of_pod = of_pod != NULL,
                               .containers = r->containers,
                               .n_containers = p->n_ctrs,
                               .grace_s = p->api->spec.termination_grace_seconds };
    if (of_pod != NULL)
        r->pod->pod_memory_request = *of_pod;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        r->containers[i].name = p->ctrs[i]->spec->name;
        r->containers[i].memory_request = requested(p->ctrs[i], "memory");
        r->containers[i].storage_request = requested(p->ctrs[i], "ephemeral-storage");
    }
}

static bool has_figures(const struct pod *p)
{
    return p->state == POD_STARTING || p->state == POD_RUNNING || p->state == POD_TERMINATING;
}

/* A victim keeps writing until it is killed: the decrease of the signal since one was chosen counts as used
 * by the first of them. While its files are removed, that amount shrinks with the shortage. If another pod is
 * the one that writes, it is found as soon as this one has ended. */
static void grow_victim(struct node *n, struct figures *f, enum ev_signal s)
{
    const struct ev_value *now = &eviction_of(n)->last[s];
    const bool nodefs = s == EV_NODEFS || s == EV_NODEFS_INODES;
    const struct eviction_pod *first = NULL;
    struct ev_pod *pod = NULL;
    struct ev_disk *to;

    for (size_t i = 0; i < f->n; i++) {
        const struct pod *p = f->pods[i].ending ? pods_by_uid(n, f->pods[i].uid) : NULL;
        const struct eviction_pod *v = p != NULL ? releasing_of(p) : NULL;

        if (v == NULL || v->signal != s || !v->disk_known || p->n_ctrs == 0 ||
            (first != NULL && v->available <= first->available))
            continue;
        first = v;
        pod = &f->pods[i];
    }
    if (first == NULL || now->available >= first->available)
        return;
    to = nodefs ? &pod->volumes : &f->containers[pod->containers - f->containers].layer;
    *(ev_signal_unit(s) == EV_BYTES ? &to->bytes : &to->inodes) += first->available - now->available;
}

static unsigned parts_of(unsigned signals)
{
    return (signals & SIGNALS_MEMORY ? CG_PART_MEMORY : 0) | (signals & SIGNALS_PID ? CG_PART_PIDS : 0);
}

enum err_code figures_read(struct node *n, unsigned signals, struct figures *ret, struct err *e)
{
    struct figures f = { 0 };
    size_t n_containers = 0;

    pods_each (n, p)
        n_containers += p->n_ctrs;
    f.pods = calloc(n->n_pods + 1, sizeof(*f.pods));
    f.containers = calloc(n_containers + 1, sizeof(*f.containers));
    if (f.pods == NULL || f.containers == NULL) {
        figures_done(&f);
        return err_nomem(e);
    }
    pods_each (n, p) {
        struct reading r = { .pod = &f.pods[f.n], .containers = f.containers + f.n_containers };

        if (!has_figures(p))
            continue;
        describe(p, &r);
        if (parts_of(signals) != 0)
            read_cgroup(n, p, parts_of(signals), r.pod);
        if (signals & SIGNALS_DISK)
            read_disks(p, &r);
        if (r.pod->ending)
            recall_disks(p, &r);
        f.n++;
        f.n_containers += p->n_ctrs;
    }
    for (size_t s = 0; s < EV_SIGNALS; s++)
        if (SIGNALS_DISK & SIGNAL_BIT(s))
            grow_victim(n, &f, s);
    *ret = f;
    return ERR_OK;
}

void figures_done(struct figures *f)
{
    free(f->pods);
    free(f->containers);
    *f = (struct figures){ 0 };
}
