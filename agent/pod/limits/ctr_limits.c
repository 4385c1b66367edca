/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/limits/ctr_limits.h"
#include "agent/api/oom_kill.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/placement/placement.h"

#include <unistd.h>

#define CRITICAL_PRIORITY 2000000000 /* kubelet's SystemCriticalPriority */
#define SCORE_GUARANTEED (-997)
#define SCORE_BEST_EFFORT 1000

static int64_t of_list(const struct api_resource_list *l, const char *name)
{
    const struct quantity *q = api_resource_get(l, name);

    if (q == NULL)
        return 0;
    return strcmp(name, "cpu") == 0 ? quantity_milli(q) : quantity_value(q);
}

/* A container's own limit, otherwise the pod's; 0: neither. As in kubelet a limit of 0 means none. */
static int64_t ctr_limits_limit_of(const struct ctr *c, const char *name)
{
    const struct api_pod_spec *s = &c->pod->api->spec;
    int64_t own = of_list(&c->spec->resources.limits, name);

    return own != 0 || !s->has_resources ? own : of_list(&s->resources.limits, name);
}

static int64_t memory_request(const struct ctr *c)
{
    return of_list(&c->spec->resources.requests, "memory");
}

/* ---- memory: protection, throttling, swap ---- */

/* Between request and limit (without a limit: the node's allocatable), in whole pages. */
static int64_t high(const struct ctr *c, int64_t request, int64_t limit)
{
    const struct api_node_resources *r = &c->pod->node->o.resources;
    int64_t page = sysconf(_SC_PAGESIZE), most = limit > 0 ? limit : node_allocatable(c->pod->node, "memory");
    double pages = ((double)request + ((double)most - (double)request) * r->memory_throttling) / (double)page;
    int64_t value = pages >= (double)(INT64_MAX / page) ? 0 : (int64_t)pages * page;

    return request != limit && value > request ? value : 0;
}

static void protect(const struct ctr *c, struct ctr_limits *ret)
{
    const struct api_node_resources *r = &c->pod->node->o.resources;
    int64_t request = memory_request(c);

    if (!r->memory_qos)
        return;
    if (r->memory_tiers && c->pod->api->qos == API_QOS_GUARANTEED)
        ret->memory_min = request;
    if (r->memory_tiers && c->pod->api->qos == API_QOS_BURSTABLE)
        ret->memory_low = request;
    if (c->pod->api->qos != API_QOS_BEST_EFFORT)
        ret->memory_high = high(c, request, ctr_limits_limit_of(c, "memory"));
}

/* Swap in proportion to the request, for containers of Burstable pods that request memory and may use
 * more. */
static int64_t ctr_limits_swap(const struct ctr *c)
{
    const struct node_options *o = &c->pod->node->o;
    int64_t request = memory_request(c), limit = of_list(&c->spec->resources.limits, "memory");

    if (!o->resources.limited_swap || c->pod->priority >= CRITICAL_PRIORITY ||
        c->pod->api->qos != API_QOS_BURSTABLE || request == limit || o->memory_bytes == 0 ||
        request > (int64_t)o->memory_bytes)
        return 0;
    return (int64_t)((double)request / (double)o->memory_bytes * (double)o->swap_bytes);
}

/* ---- out of memory ---- */

static enum api_oom_kill oom_kill(const struct pod *p)
{
    enum api_oom_kill way;

    if (!api_oom_kill_parse(api_kvs_get(&p->api->meta.annotations, API_OOM_KILL), &way) ||
        way == API_OOM_KILL_UNSET)
        way = p->node->o.resources.single_process_oom ? API_OOM_KILL_PROCESS : API_OOM_KILL_CONTAINER;
    return way;
}

bool oom_kill_cannot(const struct pod *p)
{
    enum api_oom_kill way;

    return api_oom_kill_parse(api_kvs_get(&p->api->meta.annotations, API_OOM_KILL), &way) &&
           (way == API_OOM_KILL_CONTAINER || way == API_OOM_KILL_POD) && p->node->o.cgroups != NULL &&
           cg_layout(p->node->o.cgroups) != CG_V2;
}

bool oom_kill_takes_pod(const struct pod *p)
{
    return oom_kill(p) == API_OOM_KILL_POD;
}

/* The part of spec.resources beyond the containers' requests, distributed evenly. */
static int64_t share_of_pod(const struct pod *p)
{
    const struct api_pod_spec *s = &p->api->spec;
    int64_t of_pod = s->has_resources ? of_list(&s->resources.requests, "memory") : 0;
    struct quantity sum = resources_containers_request(p->api, "memory");

    return of_pod == 0 ? 0
                       : (of_pod - quantity_value(&sum)) / (int64_t)(s->n_containers + s->n_init_containers);
}

static int64_t score(const struct pod *p, int64_t request)
{
    int64_t capacity = (int64_t)p->node->o.memory_bytes;

    return 1000 - (int64_t)((__int128)1000 * request / capacity);
}

int resources_oom_score(const struct pod *p, const struct ctr *c)
{
    const struct api_pod_spec *s = &p->api->spec;
    int64_t share = share_of_pod(p), smallest = INT64_MAX, of_regular, adj;

    if (p->priority >= CRITICAL_PRIORITY && str_eq(s->priority_class_name, "system-node-critical"))
        return SCORE_GUARANTEED;
    if (p->api->qos != API_QOS_BURSTABLE)
        return p->api->qos == API_QOS_GUARANTEED ? SCORE_GUARANTEED : SCORE_BEST_EFFORT;
    if (p->node->o.memory_bytes == 0)
        return SCORE_BEST_EFFORT - 1;
    adj = score(p, memory_request(c) + share);
    for (size_t i = 0; i < s->n_containers; i++) {
        int64_t request = of_list(&s->containers[i].resources.requests, "memory");
        smallest = request < smallest ? request : smallest;
    }
    of_regular = score(p, smallest + share);
    if (c->kind == CTR_SIDECAR && of_regular < adj) /* not killed before the regular containers it serves */
        adj = of_regular;
    if (adj < SCORE_BEST_EFFORT + SCORE_GUARANTEED)
        return SCORE_BEST_EFFORT + SCORE_GUARANTEED;
    return adj >= SCORE_BEST_EFFORT ? SCORE_BEST_EFFORT - 1 : (int)adj;
}

/* ---- all of it ---- */

void ctr_limits_of(const struct ctr *c, struct ctr_limits *ret)
{
    const struct node_options *o = &c->pod->node->o;
    const struct quantity *request = api_resource_get(&c->spec->resources.requests, "cpu");
    int64_t cpu = ctr_limits_limit_of(c, "cpu"), memory = ctr_limits_limit_of(c, "memory");

    *ret = (struct ctr_limits){
        .cpu_shares = (int64_t)cg_shares_from_milli(request != NULL ? quantity_milli(request) : cpu),
        .cpu_period_us = (int64_t)o->cpu_cfs_period_us,
        .cpu_quota_us = cpu > 0 && o->cpu_cfs_quota && !placement_is_exclusive(c)
                            ? cg_quota_from_milli(cpu, (int64_t)o->cpu_cfs_period_us)
                            : -1,
        .memory_max = memory > 0 ? memory : -1,
        .swap_max = ctr_limits_swap(c),
        .oom_group = oom_kill(c->pod) != API_OOM_KILL_PROCESS,
    };
    protect(c, ret);
}
