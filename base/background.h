/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background - clients of a loop that also has more urgent work.  What a client wants is cut into pieces; a
 * turn of the loop runs one piece, after everything that had come in by then (events of pods, ends of
 * processes), and the next turn runs the next one's.  Those who are first are asked before the others, each
 * among themselves in a circle.
 *
 * While operations are under way (base/op.h: pods start, stop, are probed), others than the first get a
 * quarter of the time at most: after a piece comes a pause of three times what the piece took.  Without
 * operations there is no pause.
 *
 * A piece should take BACKGROUND_PIECE_NS at most.  Loop thread only.
 */
#ifndef BASE_BACKGROUND_H
#define BASE_BACKGROUND_H
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define BACKGROUND_PIECE_NS UINT64_C(1000000) /* a tenth of what a pod's quickest step takes */
#define TURNS_SHARE 4                         /* one part of so many for others than the first */
#define TURNS_PAUSE_MAX_MS 200                /* also after a piece that took far too long */

struct background_client { /* begins as { .run = ... } */
    TAILQ_ENTRY(background_client) link;
    void (*run)(struct background_client *t); /* one piece; background_ask() again for the next one */
    bool first; /* before the others, and without pauses; set before background_ask() */
    bool waits;
};

TAILQ_HEAD(background_queue, background_client);

struct background {
    uv_idle_t idle;   /* runs while somebody may have a turn, so that the loop does not sleep */
    uv_check_t check; /* after what came in */
    uv_timer_t pause;
    struct background_queue first, others;
    uint64_t debt_ns; /* pause that is owed, below the resolution of a timer */
    bool pausing, closed;
    int open_handles;
    void (*on_closed)(void *owner);
    void *owner;
};

void background_init(struct background *ts, uv_loop_t *loop);
/* Who waits is forgotten.  on_closed(owner), once the handles are closed: the memory is the caller's again.
 */
void background_close(struct background *ts, void (*on_closed)(void *owner), void *owner);

void background_ask(struct background *ts,
                    struct background_client *t); /* at the end of its queue; nothing if it waits already */
void background_withdraw(struct background *ts,
                         struct background_client *t); /* nothing if it does not wait */
#endif
