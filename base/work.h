/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work - run a function on libuv's worker pool as an operation: for work on our own files that can
 * block (fsync, hashing).  The function gets what it needs by value through `arg`, touches no loop
 * state, returns its error.  It cannot be interrupted: a cancel after it began only changes the result.
 */
#ifndef BASE_WORK_H
#define BASE_WORK_H
#include "base/op.h"

typedef enum err_code (*work_fn)(void *arg, struct err *e);

struct work {
    struct op op;
    /* private */
    uv_work_t req;
    work_fn fn;
    void *arg;
    struct err outcome;
};

void work_start(struct work *w, const char *name, const char *subject, work_fn fn, void *arg, uv_loop_t *loop,
                op_done_fn done, void *owner);

/* Around what a thread of one's own does with memory, as around a job: children are not forked amid it where
 * a sanitizer's allocator would not bear that (work.c). */
void work_job_begins(void);
void work_job_ends(void);
#endif
