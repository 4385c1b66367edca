/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background - shares a loop between urgent work and clients with long work. A client's work is split into
 * pieces; each turn of the loop runs one piece, after all events that had arrived by then (events of pods,
 * exits of processes). Clients marked `first` go before the others; within each group clients take turns.
 *
 * While operations are in progress (base/op.h: pods start, stop, are probed), the other clients get at most a
 * quarter of the time: each piece is followed by a pause three times as long. Without operations there is no
 * pause.
 *
 * A piece should take at most BACKGROUND_PIECE_NS. Loop thread only.
 */
#ifndef BASE_BACKGROUND_H
#define BASE_BACKGROUND_H
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define BACKGROUND_PIECE_NS UINT64_C(1000000) /* a tenth of a pod's quickest step */
#define TURNS_SHARE 4                         /* clients that are not `first` get one part in this many */
#define TURNS_PAUSE_MAX_MS 200                /* even after a piece that took far too long */

struct background_client { /* initialize as { .run = ... } */
    TAILQ_ENTRY(background_client) link;
    void (*run)(struct background_client *t); /* runs one piece; calls background_ask() again for the next */
    bool first; /* before the others, and without pauses; set before background_ask() */
    bool waits;
};

TAILQ_HEAD(background_queue, background_client);

struct background {
    uv_idle_t idle;   /* active while a client may have a turn, so that the loop does not sleep */
    uv_check_t check; /* runs after the turn's events */
    uv_timer_t pause;
    struct background_queue first, others;
    uint64_t debt_ns; /* pause still owed, below a timer's resolution */
    bool pausing, closed;
    int open_handles;
    void (*on_closed)(void *owner);
    void *owner;
};

void background_init(struct background *ts, uv_loop_t *loop);
/* Drops waiting clients. on_closed(owner) is called once the handles are closed; the memory is the caller's
 * again. */
void background_close(struct background *ts, void (*on_closed)(void *owner), void *owner);

void background_ask(struct background *ts,
                    struct background_client *t); /* appends to its queue; no effect if already waiting */
void background_withdraw(struct background *ts, struct background_client *t); /* no effect if not waiting */
#endif
