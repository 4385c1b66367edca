/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns - clients of a loop that also has more urgent work.  What a client wants is cut into pieces; a turn
 * of the loop runs one piece, after everything that had come in by then (events of pods, ends of processes),
 * and the next turn runs the next one's.  Those who are first are asked before the others, each among
 * themselves in a circle.
 *
 * While operations are under way (base/op.h: pods start, stop, are probed), others than the first get a
 * quarter of the time at most: after a piece comes a pause of three times what the piece took.  Without
 * operations there is no pause.
 *
 * A piece should take TURNS_PIECE_NS at most.  Loop thread only.
 */
#ifndef BASE_TURNS_H
#define BASE_TURNS_H
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define TURNS_PIECE_NS UINT64_C(1000000) /* a tenth of what a pod's quickest step takes */
#define TURNS_SHARE 4                    /* one part of so many for others than the first */
#define TURNS_PAUSE_MAX_MS 200           /* also after a piece that took far too long */

struct turn { /* begins as { .run = ... } */
    TAILQ_ENTRY(turn) link;
    void (*run)(struct turn *t); /* one piece; turns_ask() again for the next one */
    bool first;                  /* before the others, and without pauses; set before turns_ask() */
    bool waits;
};

TAILQ_HEAD(turn_queue, turn);

struct turns {
    uv_idle_t idle;   /* runs while somebody may have a turn, so that the loop does not sleep */
    uv_check_t check; /* after what came in */
    uv_timer_t pause;
    struct turn_queue first, others;
    uint64_t debt_ns; /* pause that is owed, below the resolution of a timer */
    bool pausing, closed;
    int open_handles;
    void (*on_closed)(void *owner);
    void *owner;
};

void turns_init(struct turns *ts, uv_loop_t *loop);
/* Who waits is forgotten.  on_closed(owner), once the handles are closed: the memory is the caller's again.
 */
void turns_close(struct turns *ts, void (*on_closed)(void *owner), void *owner);

void turns_ask(struct turns *ts, struct turn *t); /* at the end of its queue; nothing if it waits already */
void turns_withdraw(struct turns *ts, struct turn *t); /* nothing if it does not wait */
#endif
