/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of requests and limits, the cgroups of pods and QoS classes. Formulas: kubelet pkg/kubelet/cm. */
#include "agent/pod/core/node_options.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/limits/cpu_memory.h"
#include "agent/pod/limits/ctr_limits.h"
#include "agent/pod/limits/hugepages.h"
#include "agent/pod/limits/internal.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/placement/placement.h"
#include "base/log.h"

#include <string.h>

static struct quantity zero(void)
{
    return quantity_from_int(0, QUANTITY_DECIMAL_SI);
}

static void raise_to(struct quantity *to, const struct quantity *q)
{
    if (quantity_cmp(to, q) < 0)
        *to = *q;
}

static bool is_sidecar(const struct api_container *c)
{
    return c->restart_policy == API_RESTART_ALWAYS;
}

static const struct quantity *pod_resources_find(const struct api_resources *r, const char *name, bool limits)
{
    return api_resource_get(limits ? &r->limits : &r->requests, name);
}

/* max(regular + sidecars, peak over init containers of (init + sidecars before it)). *ret_all: every
 * container (and each init container's running sum) declares the resource. */
static struct quantity of_containers(const struct api_pod *p, const char *name, bool limits, bool *ret_all)
{
    const struct api_pod_spec *s = &p->spec;
    struct quantity sum = zero(), sidecars = zero(), peak = zero();
    const struct quantity *q;
    bool all = true;

    for (size_t i = 0; i < s->n_init_containers; i++) {
        const struct api_container *c = &s->init_containers[i];
        struct quantity now = sidecars;
        q = pod_resources_find(&c->resources, name, limits);
        if (q != NULL)
            now = quantity_add(&sidecars, q);
        all = all && !quantity_is_zero(&now);
        if (is_sidecar(c))
            sidecars = now;
        raise_to(&peak, &now);
    }
    for (size_t i = 0; i < s->n_containers; i++) {
        q = pod_resources_find(&s->containers[i].resources, name, limits);
        if (q != NULL)
            sum = quantity_add(&sum, q);
        all = all && q != NULL && !quantity_is_zero(q); /* 0 means no limit */
    }
    sum = quantity_add(&sum, &sidecars);
    raise_to(&sum, &peak);
    *ret_all = all;
    return sum;
}

/* Resources allowed in spec.resources: these replace the containers' sums. */
static bool is_pod_level(const char *name)
{
    return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 || str_starts(name, "hugepages-");
}

static struct quantity aggregate(const struct api_pod *p, const char *name, bool limits, bool *ret_all)
{
    const struct api_pod_spec *s = &p->spec;
    bool all = false;
    struct quantity sum = of_containers(p, name, limits, &all);
    const struct quantity *q =
        s->has_resources && is_pod_level(name) ? pod_resources_find(&s->resources, name, limits) : NULL;

    if (q != NULL) {
        sum = *q;
        all = true;
    }
    q = api_resource_get(&s->overhead, name);
    if (q != NULL && (!limits || !quantity_is_zero(&sum)))
        sum = quantity_add(&sum, q);
    if (ret_all != NULL)
        *ret_all = all;
    return sum;
}

struct quantity resources_containers_request(const struct api_pod *p, const char *resource)
{
    return of_containers(p, resource, false, &(bool){ false });
}

struct quantity resources_pod_request(const struct api_pod *p, const char *resource)
{
    return aggregate(p, resource, false, NULL);
}

struct quantity resources_pod_limit(const struct api_pod *p, const char *resource, bool *ret_all_declare)
{
    return aggregate(p, resource, true, ret_all_declare);
}

static enum cg_class class_of(const struct pod *p)
{
    switch (p->api->qos) {
    case API_QOS_GUARANTEED:
        return CG_GUARANTEED;
    case API_QOS_BURSTABLE:
        return CG_BURSTABLE;
    case API_QOS_BEST_EFFORT:
        break;
    }
    return CG_BEST_EFFORT;
}

enum err_code resources_cgroup_path(const struct pod *p, char *ret, size_t size, struct err *e)
{
    return cg_pod_path(p->node->o.cgroups, class_of(p), p->uid, ret, size, e);
}

static bool protects_memory(const struct node *n)
{
    return n->o.resources.memory_qos && n->o.resources.memory_tiers;
}

void resources_widen(const struct cpu_memory *k, struct cg_limits *l)
{
    int64_t shares, quota;

    if (!k->known)
        return;
    shares = (int64_t)cg_shares_from_milli(k->cpu_request);
    if (l->cpu_shares < shares)
        l->cpu_shares = shares;
    quota = k->cpu_limit >= 0 ? cg_quota_from_milli(k->cpu_limit, l->cpu_period_us) : -1;
    l->cpu_quota_us = cpu_memory_wider(l->cpu_quota_us, quota);
    l->memory_max = cpu_memory_wider(l->memory_max, k->memory_limit);
}

enum err_code resources_pod_cgroup(struct pod *p, const struct cpu_memory *keep, struct err *e)
{
    const struct node_options *o = &p->node->o;
    struct cg_limits l = CG_LIMITS_NONE;
    struct quantity q = resources_pod_request(p->api, "cpu");
    struct cg_hugetlb hugetlb[HUGEPAGES_SIZES_MAX];
    bool all = false;

    l.cpu_shares = p->api->qos == API_QOS_BEST_EFFORT ? 2 : (int64_t)cg_shares_from_milli(quantity_milli(&q));
    q = resources_pod_limit(p->api, "cpu", &all);
    l.cpu_period_us = (int64_t)o->cpu_cfs_period_us;
    l.pids_max = o->pod_pids_limit > 0 ? o->pod_pids_limit : -1;
    if (all && !quantity_is_zero(&q) && o->cpu_cfs_quota && !placement_pod_is_exclusive(p))
        l.cpu_quota_us = cg_quota_from_milli(quantity_milli(&q), l.cpu_period_us);
    q = resources_pod_limit(p->api, "memory", &all);
    if (all && !quantity_is_zero(&q))
        l.memory_max = quantity_value(&q);
    q = resources_pod_request(p->api, "memory");
    if (protects_memory(p->node))
        *(p->api->qos == API_QOS_GUARANTEED ? &l.memory_min : &l.memory_low) = quantity_value(&q);
    l.oom_group = oom_kill_takes_pod(p);
    resources_widen(keep, &l);
    l.n_hugetlb = hugepages_pod_limits(p, hugetlb);
    l.hugetlb = hugetlb;
    return cg_pod_apply(o->cgroups, class_of(p), p->uid, &l, e);
}

struct sums { /* of the unfinished pods of a class */
    int64_t milli, memory;
};

static struct sums requests_of(const struct node *n, enum api_qos qos)
{
    struct sums s = { 0 };

    pods_each (n, p) {
        struct quantity q;
        if (p->api->qos != qos || p->state == POD_TERMINATED || !p->admitted)
            continue;
        q = resources_pod_request(p->api, "cpu");
        if (__builtin_add_overflow(s.milli, quantity_milli(&q), &s.milli))
            s.milli = INT64_MAX;
        q = resources_pod_request(p->api, "memory");
        if (__builtin_add_overflow(s.memory, quantity_value(&q), &s.memory))
            s.memory = INT64_MAX;
    }
    return s;
}

/* Changes of the cgroup by others are not detected. */
static void class_update(struct node *n, enum cg_class class_, const char *name, const struct cg_limits *l)
{
    struct limits_node *part = limits_node(n);
    struct err e = { 0 };

    if (part->classes[class_].known && part->classes[class_].cpu_shares == l->cpu_shares &&
        part->classes[class_].memory_low == l->memory_low)
        return;
    part->classes[class_].known = cg_qos_apply(n->o.cgroups, class_, l, &e) == ERR_OK;
    part->classes[class_].cpu_shares = l->cpu_shares;
    part->classes[class_].memory_low = l->memory_low;
    if (!part->classes[class_].known)
        log_warn("cannot update a QoS cgroup", F_STR("class", name), F_ERR(&e));
}

void resources_qos_update(struct node *n)
{
    struct limits_node *part = limits_node(n);
    struct sums burstable = requests_of(n, API_QOS_BURSTABLE),
                guaranteed = requests_of(n, API_QOS_GUARANTEED);
    struct cg_limits l = CG_LIMITS_NONE;

    l.cpu_shares = (int64_t)cg_shares_from_milli(0); /* the minimum: only CPU time that nothing else wants */
    class_update(n, CG_BEST_EFFORT, "besteffort", &l);
    l.cpu_shares = (int64_t)cg_shares_from_milli(burstable.milli);
    if (protects_memory(n)) {
        l.memory_low = burstable.memory;
        if (__builtin_add_overflow(burstable.memory, guaranteed.memory, &part->protected_bytes))
            part->protected_bytes = INT64_MAX;
        allocatable_update(n);
    }
    class_update(n, CG_BURSTABLE, "burstable", &l);
}
