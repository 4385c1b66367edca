#include "base/work.h"

#include "base/internal.h"
#include "base/scope.h"

static void run_on_pool(uv_work_t *req)
{
    struct work *w = req->data;

    if (w->fn(w->arg, &w->outcome) == ERR_OK)
        w->outcome = (struct err){ 0 };
    else if (w->outcome.code == ERR_OK)
        err_set(&w->outcome, ERR_INTERNAL, "%s: failed without saying why", w->op.name);
}

static void on_ran(uv_work_t *req, int status)
{
    struct work *w = req->data;

    /* UV_ECANCELED: it never began; op_finish() puts the reason (cancel, deadline) in place. */
    if (status != 0 && w->outcome.code == ERR_OK)
        err_set(&w->outcome, ERR_CANCELLED, "%s: cancelled", w->op.name);
    op_finish(&w->op, &w->outcome);
}

static void abort_work(struct op *op)
{
    struct work *w = container_of(op, struct work, op);

    uv_cancel((uv_req_t *)&w->req); /* EBUSY: it runs already, and on_ran() follows anyway */
}

void work_start(struct work *w, const char *name, const char *subject, work_fn fn, void *arg, uv_loop_t *loop,
                op_done_fn done, void *owner)
{
    int status;

    *w = (struct work){ .fn = fn, .arg = arg };
    op_init(&w->op, loop, name, 0, abort_work, done, owner);
    if (subject != NULL)
        op_set_subject(&w->op, subject);
    w->req.data = w;
    status = uv_queue_work(loop, &w->req, run_on_pool, on_ran);
    if (status != 0) {
        err_sys(&w->outcome, -status, "%s: queue work", name);
        op_finish(&w->op, &w->outcome);
    }
}
