/* SPDX-License-Identifier: Apache-2.0 */
#include "base/work.h"

#include "base/internal.h"
#include "base/sanitized.h"
#include "base/scope.h"

/* Sanitizers only: glibc's fork() keeps malloc usable in the child of a multi-threaded process, but a
 * sanitizer's allocator does not: the child would wait forever for a lock that a pool thread held at that
 * moment. So children are forked between jobs, or after WORK_PAUSE_MS in any case. */
#if SANITIZED
#include <pthread.h>
#include <time.h>

#define WORK_PAUSE_MS 5000 /* jobs read and write our own files; none waits for the loop */

/* Read-locked while a job runs; a thread that wants to fork takes precedence over new jobs. */
static pthread_rwlock_t jobs = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void work_job_begins(void)
{
    pthread_rwlock_rdlock(&jobs);
}

void work_job_ends(void)
{
    pthread_rwlock_unlock(&jobs);
}

bool work_pause(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WORK_PAUSE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_rwlock_clockwrlock(&jobs, CLOCK_MONOTONIC, &until) == 0;
}

void work_go_on(bool paused)
{
    if (paused)
        pthread_rwlock_unlock(&jobs);
}
#else
void work_job_begins(void)
{
}

void work_job_ends(void)
{
}

bool work_pause(void)
{
    return false;
}

void work_go_on(bool paused)
{
    (void)paused;
}
#endif

static void run_on_pool(uv_work_t *req)
{
    struct work *w = req->data;
    struct err e = { 0 };

    work_job_begins();
    if (w->fn(w->arg, &e) == ERR_OK)
        e.code = ERR_OK;
    else if (e.code == ERR_OK)
        err_set(&e, ERR_INTERNAL, "%s: failed without an error message", w->op.name);
    err_keep(&w->outcome, &e);
    work_job_ends();
}

static void on_ran(uv_work_t *req, int status)
{
    struct work *w = req->data;
    struct err e = err_kept_get(&w->outcome);

    /* UV_ECANCELED: it never began; op_finish() sets the reason (cancel, deadline). */
    if (status != 0 && e.code == ERR_OK)
        err_set(&e, ERR_CANCELLED, "%s: cancelled", w->op.name);
    err_kept_drop_text(&w->outcome);
    op_finish(&w->op, &e);
}

static void abort_work(struct op *op)
{
    struct work *w = container_of(op, struct work, op);

    uv_cancel((uv_req_t *)&w->req); /* EBUSY: already running; on_ran() follows anyway */
}

void work_start(struct work *w, const char *name, const char *subject, work_fn fn, void *arg, uv_loop_t *loop,
                op_done_fn done, void *owner)
{
    struct err e = { 0 };
    int status;

    *w = (struct work){ .fn = fn, .arg = arg };
    op_init(&w->op, loop, name, 0, abort_work, done, owner);
    if (subject != NULL)
        op_set_subject(&w->op, subject);
    w->req.data = w;
    status = uv_queue_work(loop, &w->req, run_on_pool, on_ran);
    if (status != 0) {
        err_sys(&e, -status, "%s: queue work", name);
        op_finish(&w->op, &e);
    }
}
