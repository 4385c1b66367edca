/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/eviction/disk_reader.h"

#include "base/op.h"
#include "base/priority.h"
#include "base/scope.h"
#include "base/thread.h"
#include "base/work.h"

#include <stdbool.h>
#include <stdlib.h>

#define STACK (128 * 1024)

struct disk_reader {
    pthread_t thread;
    uv_sem_t asked;
    uv_async_t answered;
    struct op op; /* names it among what is under way */
    void (*read)(void *arg);
    void (*done)(void *arg);
    void *arg;
    bool ends; /* written before `asked` is posted, read after it */
};

static void *reader_run(void *arg)
{
    struct disk_reader *r = arg;

    priority_raise();
    for (;;) {
        uv_sem_wait(&r->asked);
        if (r->ends)
            return NULL;
        work_job_begins();
        r->read(r->arg);
        work_job_ends();
        uv_async_send(&r->answered);
    }
}

static void on_answered(uv_async_t *async)
{
    struct disk_reader *r = async->data;

    uv_unref((uv_handle_t *)async);
    op_finish(&r->op, NULL);
}

static void on_op_done(struct op *op, const struct err *result)
{
    const struct disk_reader *r = op->owner;

    (void)result;
    r->done(r->arg);
}

static void reader_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

enum err_code disk_reader_open(struct disk_reader **ret, uv_loop_t *loop, void (*read)(void *arg),
                               void (*done)(void *arg), void *arg, struct err *e)
{
    struct disk_reader *r = calloc(1, sizeof(*r));
    int sys;

    if (r == NULL)
        return err_nomem(e);
    r->read = read;
    r->done = done;
    r->arg = arg;
    sys = -uv_sem_init(&r->asked, 0);
    if (sys != 0) {
        free(r);
        return err_sys(e, sys, "make a semaphore");
    }
    sys = -uv_async_init(loop, &r->answered, on_answered);
    if (sys != 0) {
        uv_sem_destroy(&r->asked);
        free(r);
        return err_sys(e, sys, "make an event of the loop");
    }
    r->answered.data = r;
    uv_unref((uv_handle_t *)&r->answered);
    sys = thread_start(&r->thread, STACK, false, reader_run, r);
    if (sys != 0) {
        uv_sem_destroy(&r->asked);
        uv_close((uv_handle_t *)&r->answered, reader_on_closed);
        return err_sys(e, sys, "start the thread that reads disks");
    }
    *ret = r;
    return ERR_OK;
}

void disk_reader_go(struct disk_reader *r)
{
    op_init(&r->op, r->answered.loop, "look at disks", 0, NULL, on_op_done, r);
    uv_ref((uv_handle_t *)&r->answered);
    uv_sem_post(&r->asked);
}

void disk_reader_close(struct disk_reader *r)
{
    if (r == NULL)
        return;
    r->ends = true;
    uv_sem_post(&r->asked);
    pthread_join(r->thread, NULL);
    uv_sem_destroy(&r->asked);
    uv_close((uv_handle_t *)&r->answered, reader_on_closed);
}
