/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trimmer - returns memory to the kernel when a burst of work is over: free pages of the heap, and pages of
 * code and constants. The kernel maps 64 KiB around each instruction that runs for the first time, so that
 * after the start nearly the whole program counts as the process's memory, although an idle agent needs a
 * tenth of it. Code that runs again is mapped again from the page cache, at 1 us for 64 KiB.
 *
 * Loop thread only. An idle process gets no wake-up: the timer runs once after a burst.
 */
#ifndef BASE_TRIMMER_H
#define BASE_TRIMMER_H
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define TRIMMER_DELAY_MS 3000     /* since the last call of trimmer_later() */
#define TRIMMER_INTERVAL_MS 10000 /* since the last time: it takes 1 ms with a heap of 10 MiB */

struct trimmer { /* private */
    uv_timer_t timer;
    uint64_t work_ms, run_ms; /* when there was work, and when memory was returned; clock_mono_ms() */
    bool open;
};

/* The trimmer keeps its address until its handle is closed, on a turn of the loop after trimmer_close(). */
void trimmer_open(struct trimmer *t, uv_loop_t *loop);
/* Work goes on: memory is returned TRIMMER_DELAY_MS after the last call. `t` may be NULL, or closed. */
void trimmer_later(struct trimmer *t);
void trimmer_close(struct trimmer *t); /* does nothing unless open */

void trimmer_run(void); /* at once */
#endif
