/* SPDX-License-Identifier: Apache-2.0 */
/* hold - releases the devices of a pod, and wakes pods that may use them. */
#include "agent/pod/core/facts.h"
#include "agent/pod/device/internal.h"
#include "agent/pod/placement/placement.h"

static bool holds_any(const struct pod *p)
{
    return dp_holdings_pod_next(devices_holdings(p->node), p->uid, NULL) != NULL;
}

bool device_is_judged(const struct pod *p)
{
    return p->state == POD_PENDING || (p->state == POD_TERMINATED && pod_may_return(p));
}

bool device_has_ended(const struct pod *p)
{
    return p->state == POD_TERMINATED && (p->rejected || p->shutdown_ns == 0 || !pod_runs_again(p));
}

void device_came_free(struct node *n)
{
    device_node(n)->freed++;
    pods_each (n, p)
        if (device_is_judged(p))
            pod_wake(p, "devices came free");
}

static void keep_shown(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct device_ctr *own = device_ctr_of(p->ctrs[i]);
        if (own->last == NULL)
            own->last = device_health_json(p->ctrs[i]);
    }
}

static void drop(struct pod *p)
{
    struct node *n = p->node;
    bool holds = holds_any(p), placed = placement_release(p);

    if (!holds && !placed)
        return;
    dp_holdings_drop(device_node(n)->holdings, p->uid, NULL, NULL);
    if (holds)
        checkpoint_changed(n);
    device_came_free(n);
}

void devices_release(struct pod *p)
{
    struct device_pod *part = device_of(p);

    if (op_live(&part->ask.op))
        op_cancel(&part->ask.op);
    if (p->shutdown_ns != 0 && !p->rejected && pod_runs_again(p))
        return;
    if (!p->rejected)
        keep_shown(p);
    drop(p);
    if (part->state != DEVICES_REFUSED)
        device_set_state(p, DEVICES_RELEASED);
    p->record_dirty = true;
}

void devices_gone(struct pod *p)
{
    if (!p->node->closing)
        drop(p);
}
