/* Sums of requests and limits, the pod's cgroup, oom_score_adj. Formulas: kubelet pkg/kubelet/cm,
 * qos/policy.go. */
#include "agent/pod/hugepages.h"
#include "agent/pod/pod.h"
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

/*
 * max(regular + sidecars, peak over init containers of (init + sidecars before it)); pod-level values replace
 * it. *ret_all: every container (and each init container's running sum) declares the resource.
 */
static struct quantity aggregate(const struct api_pod *p, const char *name, bool limits, bool *ret_all)
{
    const struct api_pod_spec *s = &p->spec;
    struct quantity sum = zero(), sidecars = zero(), peak = zero();
    const struct quantity *q;
    bool all = true;

    for (size_t i = 0; i < s->n_init_containers; i++) {
        const struct api_container *c = &s->init_containers[i];
        struct quantity now = sidecars;
        q = api_resource_get(limits ? &c->resources.limits : &c->resources.requests, name);
        if (q != NULL)
            now = quantity_add(&sidecars, q);
        all = all && !quantity_is_zero(&now);
        if (is_sidecar(c))
            sidecars = now;
        raise_to(&peak, &now);
    }
    for (size_t i = 0; i < s->n_containers; i++) {
        q = api_resource_get(
            limits ? &s->containers[i].resources.limits : &s->containers[i].resources.requests, name);
        if (q != NULL)
            sum = quantity_add(&sum, q);
        all = all && q != NULL && !quantity_is_zero(q); /* 0 is no limit */
    }
    sum = quantity_add(&sum, &sidecars);
    raise_to(&sum, &peak);
    q = s->has_resources ? api_resource_get(limits ? &s->resources.limits : &s->resources.requests, name)
                         : NULL;
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

enum err_code resources_pod_cgroup(struct pod *p, struct err *e)
{
    struct cg_limits l = CG_LIMITS_NONE;
    struct quantity q = resources_pod_request(p->api, "cpu");
    struct cg_hugetlb hugetlb[HUGEPAGES_SIZES_MAX];
    bool all = false;

    l.cpu_shares = p->api->qos == API_QOS_BEST_EFFORT ? 2 : (int64_t)cg_shares_from_milli(quantity_milli(&q));
    q = resources_pod_limit(p->api, "cpu", &all);
    l.cpu_period_us = (int64_t)p->node->o.cpu_cfs_period_us;
    l.pids_max = p->node->o.pod_pids_limit > 0 ? p->node->o.pod_pids_limit : -1;
    if (all && !quantity_is_zero(&q) && p->node->o.cpu_cfs_quota)
        l.cpu_quota_us = cg_quota_from_milli(quantity_milli(&q), l.cpu_period_us);
    q = resources_pod_limit(p->api, "memory", &all);
    if (all && !quantity_is_zero(&q))
        l.memory_max = quantity_value(&q);
    l.n_hugetlb = hugepages_pod_limits(p, hugetlb);
    l.hugetlb = hugetlb;
    return cg_pod_apply(p->node->o.cgroups, class_of(p), p->uid, &l, e);
}

void resources_qos_update(struct node *n)
{
    int64_t milli = 0;
    struct pod *p, *tmp;
    struct err e = { 0 };

    HASH_ITER (hh, n->pods, p, tmp) {
        struct quantity q;
        if (p->api->qos != API_QOS_BURSTABLE || p->state == POD_TERMINATED || !p->admitted)
            continue;
        q = resources_pod_request(p->api, "cpu");
        milli += quantity_milli(&q);
    }
    if (cg_qos_apply(n->o.cgroups, CG_BURSTABLE, cg_shares_from_milli(milli), &e) != ERR_OK)
        log_warn("QoS cgroup cannot be updated", F_STR("class", "burstable"), F_ERR(&e));
}

int resources_oom_score(const struct pod *p, const struct ctr *c)
{
    const struct quantity *q = api_resource_get(&c->spec->resources.requests, "memory");
    int64_t capacity = (int64_t)p->node->o.memory_bytes, request = q != NULL ? quantity_value(q) : 0, score;

    if (p->priority >= 2000000000 && str_eq(p->api->spec.priority_class_name, "system-node-critical"))
        return -997;
    switch (p->api->qos) {
    case API_QOS_GUARANTEED:
        return -997;
    case API_QOS_BEST_EFFORT:
        return 1000;
    case API_QOS_BURSTABLE:
        break;
    }
    if (capacity <= 0)
        return 999;
    score = 1000 - (int64_t)((__int128)1000 * request / capacity);
    if (c->kind == CTR_SIDECAR) { /* not killed before the regular containers it serves */
        int64_t smallest = INT64_MAX;
        for (size_t i = 0; i < p->api->spec.n_containers; i++) {
            const struct quantity *r =
                api_resource_get(&p->api->spec.containers[i].resources.requests, "memory");
            int64_t v = r != NULL ? quantity_value(r) : 0;
            if (v < smallest)
                smallest = v;
        }
        int64_t other = 1000 - (int64_t)((__int128)1000 * smallest / capacity);
        if (other < score)
            score = other;
    }
    return score < 3 ? 3 : score > 999 ? 999 : (int)score;
}
