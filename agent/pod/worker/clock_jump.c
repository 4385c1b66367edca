/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wall clock is set while pods live (a node that boots with a wrong one and then meets NTP): what waits
 * goes on as long as it would have.  Times that are shown are of the wall clock and stay as they are; what is
 * compared with "now" moves with the jump.  The clock since boot tells of one: it counts on through
 * everything, sleep included.
 */
#include "agent/pod/core/pod.h"
#include "agent/pod/worker/worker.h"
#include "base/clock.h"
#include "base/log.h"

#include <time.h>

#define JUMP_MIN_NS                                                                                          \
    (500 * INT64_C(1000000)) /* less is adjtime()'s slow pace, or the time between two readings */

int64_t clock_jump_offset_ns(void)
{
    struct timespec boot;

    clock_gettime(CLOCK_BOOTTIME, &boot);
    return clock_wall_ns() - ((int64_t)boot.tv_sec * 1000000000 + boot.tv_nsec);
}

static void clock_jump_move(int64_t *at_ns, int64_t by_ns)
{
    if (*at_ns != 0)
        *at_ns += by_ns;
}

void clock_jump_pod(struct pod *p, int64_t by_ns)
{
    p->ending_shift_ns += by_ns;
    clock_jump_move(&p->net_retry_ns, by_ns);
    clock_jump_move(&p->net_check_ns, by_ns);
    clock_jump_move(&p->net_look_ns, by_ns);
    clock_jump_move(&p->net_again_ns, by_ns);
    clock_jump_move(&p->pidns_retry_ns, by_ns);
    clock_jump_move(&p->vols_retry_ns, by_ns);
    clock_jump_move(&p->vols_tidy_ns, by_ns);
    for (size_t i = 0; i < p->n_images; i++)
        clock_jump_move(&p->images[i]->retry_at_ns, by_ns);
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = &p->ctrs[i];
        c->ended_shift_ns += by_ns;
        clock_jump_move(&c->backoff_at_ns, by_ns);
        clock_jump_move(&c->retry_at_ns, by_ns);
        clock_jump_move(&c->stop_deadline_ns, by_ns);
        clock_jump_move(&c->kill_again_ns, by_ns);
    }
    p->record_dirty = true;
}

void clock_jump_check(struct node *n)
{
    int64_t by_ns = clock_jump_offset_ns() - n->clock_offset_ns;
    struct pod *p, *tmp;

    if (by_ns > -JUMP_MIN_NS && by_ns < JUMP_MIN_NS)
        return;
    log_warn("the clock was set; what waits goes on as before", F_I64("byMs", by_ns / 1000000));
    n->clock_offset_ns += by_ns;
    HASH_ITER (hh, n->pods, p, tmp) {
        clock_jump_pod(p, by_ns);
        pod_wake(p);
    }
}
