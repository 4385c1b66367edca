/* SPDX-License-Identifier: Apache-2.0 */
/* call_thread - a call (process.h) in its own thread instead of a forked child. */
#include "base/process/internal.h"
#include "base/thread.h"
#include "base/work.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum {
    STACK_BYTES = 4 * 1024 * 1024
}; /* enough for jansson, which writes 2048 levels, the depth it reads, in less than one MiB */

struct call_thread {
    pthread_t id;
    uv_async_t ended;
    struct proc_call *call; /* its `out` belongs to the thread until the thread ends */
    proc_call_fn fn;
    const void *arg;
    struct err told;
};

static void *call_thread_run(void *arg)
{
    struct call_thread *t = arg;

    work_job_begins();
    if (unshare(CLONE_FS) != 0)
        err_sys(&t->told, errno, "unshare the working directory");
    else
        call_run(t->fn, t->arg, &t->call->out, &t->told);
    work_job_ends();
    uv_async_send(&t->ended);
    return NULL;
}

static void call_thread_on_ended(uv_async_t *async)
{
    struct call_thread *t = async->data;
    struct proc_call *c = t->call;

    pthread_join(t->id, NULL); /* it has ended or is about to */
    if (t->told.code != ERR_OK)
        err_wrap(&t->told, "%s", c->job->name);
    op_close_handle(&c->op, (uv_handle_t *)&t->ended);
    call_end(c, t->told.code == ERR_OK ? NULL : &t->told);
}

enum err_code call_thread_start(struct proc_call *c, const struct proc_call_spec *spec, struct err *e)
{
    struct call_thread *t = calloc(1, sizeof(*t));
    int sys;

    if (t == NULL)
        return err_nomem(e);
    *t = (struct call_thread){ .call = c, .fn = spec->fn, .arg = spec->arg };
    sys = -uv_async_init(c->op.loop, &t->ended, call_thread_on_ended);
    if (sys != 0) {
        free(t);
        return err_sys(e, sys, "watch a thread");
    }
    t->ended.data = t;
    c->job->thread = t; /* freed when its handle is closed */
    sys = thread_start(&t->id, STACK_BYTES, false, call_thread_run, t);
    if (sys != 0) {
        op_close_handle(&c->op, (uv_handle_t *)&t->ended);
        return err_sys(e, sys, "start a thread");
    }
    return ERR_OK;
}
