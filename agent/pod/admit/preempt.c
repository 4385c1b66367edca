/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/admit/preempt.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/limits/admission_fit.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

#define PREEMPT_TEXT "Preempted in order to admit critical pod"

/* kubelet's Preemptable() */
static bool may_end(const struct pod *for_whom, const struct pod *o)
{
    if (o == for_whom || o->state == POD_TERMINATING || o->state == POD_PENDING || !admission_fit_counts(o))
        return false;
    return (preempt_is_critical(for_whom) && !preempt_is_critical(o)) || for_whom->priority > o->priority;
}

struct need {
    const char *resource;
    int64_t amount;
};

struct needs {
    struct need v[ADMISSION_FIT_SHORTAGES_MAX];
    size_t n;
};

static struct needs preempt_less(const struct needs *from, struct pod *const *pods, size_t n)
{
    struct needs left = { 0 };

    for (size_t i = 0; i < from->n; i++) {
        struct need one = from->v[i];
        for (size_t k = 0; k < n && one.amount > 0; k++)
            one.amount -= admission_fit_request(pods[k]->api, one.resource);
        if (one.amount > 0)
            left.v[left.n++] = one;
    }
    return left;
}

static double preempt_distance(const struct needs *from, const struct pod *p)
{
    double sum = 0;

    for (size_t i = 0; i < from->n; i++) {
        double left = (double)(from->v[i].amount - admission_fit_request(p->api, from->v[i].resource)) /
                      (double)from->v[i].amount;
        if (left > 0)
            sum += left * left;
    }
    return sum;
}

static bool asks_for_less(const struct pod *a, const struct pod *b)
{
    static const char *const names[] = { "memory", "cpu" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int64_t x = admission_fit_request(a->api, names[i]), y = admission_fit_request(b->api, names[i]);
        if (x != y)
            return x < y;
    }
    return true;
}

/* Moves pods that cover the needs from pods[] to ret[]; returns their number. */
static size_t preempt_take(struct pod **pods, size_t n, struct needs needs, struct pod **ret)
{
    size_t taken = 0;

    while (needs.n > 0 && n > 0) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++) {
            double now = preempt_distance(&needs, pods[i]), before = preempt_distance(&needs, pods[best]);
            if (now < before || (now <= before && asks_for_less(pods[i], pods[best])))
                best = i;
        }
        needs = preempt_less(&needs, &pods[best], 1);
        ret[taken++] = pods[best];
        pods[best] = pods[--n];
    }
    return taken;
}

static struct needs needs_of(const struct pod *p)
{
    struct shortage lacks[ADMISSION_FIT_SHORTAGES_MAX];
    struct needs needs = { .n = admission_fit_shortages(p, p->api, false, lacks) };

    for (size_t i = 0; i < needs.n; i++)
        needs.v[i] =
            (struct need){ lacks[i].resource, lacks[i].requested - (lacks[i].capacity - lacks[i].used) };
    return needs;
}

static enum err_code none_found(const struct needs *left, struct err *e)
{
    buf_auto b = BUF_INIT(4096);

    for (size_t i = 0; i < left->n; i++)
        buf_addf(&b, "(res: %.100s, q: %lld), ", left->v[i].resource, (long long)left->v[i].amount);
    return err_set(e, ERR_EXHAUSTED,
                   "preemption: error finding a set of pods to preempt: no set of running pods found to "
                   "reclaim resources: [%.200s]",
                   b.n > 0 ? b.p : "");
}

/* The pods of a class that *p may end, into ret[]. */
static size_t of_class(const struct pod *p, enum api_qos qos, struct pod **ret)
{
    size_t n = 0;

    pods_each (p->node, o)
        if (may_end(p, o) && o->api->qos == qos)
            ret[n++] = o;
    return n;
}

enum err_code preempt_choose(const struct pod *p, struct pod **ret, size_t *ret_n, struct err *e)
{
    size_t all = p->node->n_pods, n, chosen;
    mem_auto struct pod **pods = calloc(all * 2 + 1, sizeof(*pods));
    struct pod **guaranteed = pods != NULL ? pods + all : NULL;
    struct needs needs = needs_of(p), left;

    if (pods == NULL)
        return err_nomem(e);
    n = of_class(p, API_QOS_BEST_EFFORT, pods);
    n += of_class(p, API_QOS_BURSTABLE, pods + n);
    left = preempt_less(&needs, pods, n); /* the shortage even without all of these */
    chosen = preempt_take(guaranteed, of_class(p, API_QOS_GUARANTEED, guaranteed), left, ret);
    left = preempt_less(&left, ret, chosen);
    if (left.n > 0)
        return none_found(&left, e);

    needs = preempt_less(&needs, ret, chosen);
    n = of_class(p, API_QOS_BEST_EFFORT, pods);
    left = preempt_less(&needs, pods, n);
    n = of_class(p, API_QOS_BURSTABLE, pods);
    n = preempt_take(pods, n, left, ret + chosen);
    needs = preempt_less(&needs, ret + chosen, n);
    chosen += n;
    n = of_class(p, API_QOS_BEST_EFFORT, pods);
    chosen += preempt_take(pods, n, needs, ret + chosen);
    *ret_n = chosen;
    return ERR_OK;
}

static void end_for(struct pod *victim, const struct pod *p)
{
    log_warn("ending a pod to make room for a critical one", F_STR("pod", victim->key),
             F_STR("podUID", victim->uid), F_STR("critical", p->key));
    pod_event(victim, NULL, true, PREEMPT_REASON, PREEMPT_TEXT);
    snprintf(victim->phase, sizeof(victim->phase), "Failed");
    snprintf(victim->reason, sizeof(victim->reason), PREEMPT_REASON);
    free(victim->message);
    victim->message = strdup(PREEMPT_TEXT);
    victim->preempted_ns = clock_wall_ns();
    pod_ask_end(victim, victim->api->spec.termination_grace_seconds, "a critical pod needs its resources");
    pod_wake(victim, "ended for a critical pod");
}

enum err_code preempt_for(struct pod *p, char reason[64], struct err *e)
{
    mem_auto struct pod **victims = calloc(p->node->n_pods + 1, sizeof(struct pod *));
    struct err why = { 0 };
    size_t n = 0;

    if (victims == NULL)
        err_nomem(&why);
    if (victims == NULL || preempt_choose(p, victims, &n, &why) != ERR_OK) {
        snprintf(reason, 64, "UnexpectedAdmissionError");
        return err_set(e, ERR_PRECONDITION,
                       "Unexpected error while attempting to recover from admission failure: %s", why.text);
    }
    p->preempting = p->record_dirty = true;
    for (size_t i = 0; i < n; i++)
        end_for(victims[i], p);
    return err_set(e, ERR_UNAVAILABLE, "waits for %zu pods that are ending to make room for it", n);
}
