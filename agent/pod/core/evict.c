/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/evict.h"

#include "agent/pod/core/events.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

static int64_t wait_ns(unsigned disruptions)
{
    int64_t wait = EVICTED_WAIT_NS;

    while (disruptions-- > 1 && wait < EVICTED_WAIT_MAX_NS)
        wait *= 2;
    return wait < EVICTED_WAIT_MAX_NS ? wait : EVICTED_WAIT_MAX_NS;
}

struct boot_time pod_evicted_until(const struct pod *p)
{
    return clock_boot_after(p->state_began, wait_ns(p->disruptions));
}

static void count_disruption(struct pod *p)
{
    int64_t ran_ns = p->start_time_ns != 0 ? clock_boot_since_ns(p->active_began) : 0;

    if (ran_ns > EVICTED_CALM_NS && ran_ns > 2 * wait_ns(p->disruptions))
        p->disruptions = 0;
    p->disruptions++;
}

bool pod_evict(struct pod *p, const struct pod_eviction *e)
{
    const char *message = e->message != NULL ? e->message : ""; /* NULL: out of memory */

    if ((p->state != POD_STARTING && p->state != POD_RUNNING) || p->node->closing) {
        free(e->message);
        free(e->measured);
        return false;
    }
    log_warn("evicting a pod", F_STR("pod", p->key), F_STR("podUID", p->uid), F_STR("why", message));
    pod_event_annotated(p, true, POD_EVICTED, message, e->annotations);
    snprintf(p->phase, sizeof(p->phase), "Failed");
    snprintf(p->reason, sizeof(p->reason), POD_EVICTED);
    free(p->message);
    p->message = e->message;
    free(p->measured);
    p->measured = e->measured;
    p->evicted_ns = clock_wall_ns();
    p->disrupted = e->disruption;
    if (p->disrupted)
        count_disruption(p);
    p->kill_now = e->grace_s == 0;
    pod_ask_end(p, e->grace_s, "it is evicted");
    pod_wake(p, "evicted");
    return true;
}

void pod_evict_faster(struct pod *p)
{
    if (p->state != POD_TERMINATING || p->kill_now)
        return;
    p->kill_now = p->record_dirty = true;
    pod_wake(p, "its eviction cannot wait");
}
