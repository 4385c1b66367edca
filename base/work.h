/* SPDX-License-Identifier: Apache-2.0 */
/* work - runs a function on libuv's worker pool as an operation, for work on our own files that can block
 * (fsync, hashing). The function gets its input by value through `arg`, touches no loop state and returns its
 * error. It cannot be interrupted: once it has begun, a cancel only changes the result. */
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
    struct err_kept outcome;
};

void work_start(struct work *w, const char *name, const char *subject, work_fn fn, void *arg, uv_loop_t *loop,
                op_done_fn done, void *owner);

/* Call these around a thread's use of memory, as around a job: with a sanitizer whose allocator does not
 * survive a fork, no child is forked in between (work.c). */
void work_job_begins(void);
void work_job_ends(void);

/* Call around a fork() whose child runs on without exec (see work.c). Does nothing without a sanitizer. */
bool work_pause(void); /* the result is passed to work_go_on() */
void work_go_on(bool paused);
#endif
