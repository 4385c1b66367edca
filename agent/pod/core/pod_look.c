/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/pod_look.h"

#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/pod.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"

enum { LOOK_FIRST_MS = 50, LOOK_MAX_MS = 10000 };

void pod_look_again(struct pod *p, const struct err *e)
{
    struct pod_look *l = &p->look;

    if (!l->failed_now) { /* the first failure of this turn sets the pace for all */
        if (l->wait_ms == 0) {
            l->since_ns = clock_wall_ns();
            log_warn("state is unknown; will check again", F_STR("pod", p->key), F_ERR(e));
        }
        l->wait_ms = backoff_next_ms(l->wait_ms, LOOK_FIRST_MS, LOOK_MAX_MS);
        snprintf(l->error, sizeof(l->error), "%s", e->text);
        l->failed_now = true;
    }
    l->retry_at = clock_boot_in_ms(l->wait_ms);
    pod_wake_at(p, l->retry_at, "state was unknown");
}

void pod_look_begin(struct pod *p)
{
    p->look.failed_now = false;
}

void pod_look_end(struct pod *p)
{
    struct pod_look *l = &p->look;

    if (l->failed_now) {
        pod_wake_at(p, l->retry_at,
                    "state was unknown"); /* a change of state in this turn has stopped the timer */
        return;
    }
    if (l->wait_ms != 0)
        log_info("state is known again", F_STR("pod", p->key));
    *l = (struct pod_look){ 0 };
}

void pod_look_explain(const struct pod *p, json_t *steps)
{
    if (p->look.wait_ms != 0)
        explain_step(steps, "state", "failed", p->look.since_ns, p->look.error,
                     clock_boot_to_wall_ns(p->look.retry_at));
}
