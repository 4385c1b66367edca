/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that were rejected, or ended for a critical one. In a cluster their controller would recreate them,
 * perhaps elsewhere; here nothing else would. So they are checked again whenever something on the node
 * changed (a pod ended or became smaller, huge pages were reserved, settings were reloaded), and one that
 * could be admitted is followed by a new pod, as after an edit that needs one.
 */
#include "agent/pod/admit/admit.h"
#include "agent/pod/admit/preempt.h"
#include "agent/pod/admit/resize.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/evict.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/eviction/eviction.h"
#include "base/log.h"

#include <string.h>

static bool is_out(const struct pod *p)
{
    return p->state == POD_TERMINATED && pod_may_return(p) && p->shutdown_ns == 0;
}

bool readmit_waits(const struct pod *p)
{
    return p->state == POD_PENDING || is_out(p);
}

bool readmit_before(const struct pod *a, const struct pod *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->created_ns != b->created_ns)
        return a->created_ns < b->created_ns;
    return strcmp(a->key, b->key) < 0;
}

static bool could_preempt(const struct pod *p)
{
    mem_auto struct pod **victims = calloc(p->node->n_pods + 1, sizeof(struct pod *));
    size_t n = 0;

    return victims != NULL && preempt_is_critical(p) && preempt_choose(p, victims, &n, ERR_IGNORED) == ERR_OK;
}

/* The first message is kept: other pods' amounts have changed since. */
static void readmit_tell(struct pod *p, const char *reason, const struct err *why)
{
    str_auto message = str_printf("Pod was rejected: %s", why->text);

    if (!p->rejected || message == NULL || str_eq(p->message, message))
        return;
    if (strcmp(p->reason, reason) != 0)
        pod_event(p, NULL, true, reason, "%s", why->text);
    snprintf(p->reason, sizeof(p->reason), "%s", reason);
    free(p->message);
    p->message = take_ptr(&message);
    p->record_dirty = true;
}

static bool under_pressure(const struct node *n)
{
    return eviction_pressure(n, EV_MEMORY_PRESSURE) || eviction_pressure(n, EV_DISK_PRESSURE) ||
           eviction_pressure(n, EV_PID_PRESSURE);
}

void readmit_step(struct pod *p)
{
    struct node *n = p->node;
    char reason[64] = "";
    struct err e = { 0 };
    enum err_code code;

    if (!is_out(p) || !n->sources_ready || n->closing || n->draining || !p->wanted || p->successor != NULL ||
        !pod_ask_idle(p))
        return;
    if (p->disrupted && !clock_boot_is_due(pod_evicted_until(p))) {
        pod_wake_at(p, pod_evicted_until(p), "an evicted pod may come back");
        return;
    }
    if (p->disrupted && under_pressure(n)) /* also one that would be admitted would only be evicted again */
        return;
    code = admit_pod(p, reason, &e);
    if (code == ERR_OK && !devices_can_admit(p))
        return;
    if (code == ERR_OK)
        code = admit_extended(p, reason, &e);
    if (code == ERR_OK || (code == ERR_EXHAUSTED && could_preempt(p))) {
        log_info("rejected pod can be admitted now; starting it", F_STR("pod", p->key),
                 F_STR("podUID", p->uid), F_STR("was", p->reason));
        p->successor = api_pod_ref(p->api);
        return;
    }
    if (code == ERR_UNAVAILABLE)
        return;
    /* For a critical one the other reason names the pods it could not end. */
    if (code != ERR_EXHAUSTED || !preempt_is_critical(p))
        readmit_tell(p, reason, &e);
}

void pods_wake_pending(struct node *n, const char *why)
{
    pods_each (n, p)
        if (readmit_waits(p) || resize_waits(p))
            pod_wake(p, why);
}
