/* SPDX-License-Identifier: Apache-2.0 */
/* Common to all kinds of checks: memory, verdict, end. */
#include "agent/probe/internal.h"

#include <stdlib.h>

const char *probe_outcome_name(enum probe_outcome o)
{
    switch (o) {
    case PROBE_SUCCESS:
        return "success";
    case PROBE_WARNING:
        return "warning";
    case PROBE_FAILURE:
        return "failure";
    case PROBE_UNKNOWN:
        return "unknown";
    }
    return "?";
}

static void probe_check_on_over(struct op *op, const struct err *result)
{
    struct probe_check *c = container_of(op, struct probe_check, op);
    struct probe_run *run = take_ptr(&c->run);
    struct err told = *result;
    op_done_fn done = run->done;

    if (told.code == ERR_DEADLINE) /* the abort function has already set the verdict */
        told = (struct err){ 0 };
    if (run->free != NULL)
        run->free(run);
    free(run);
    if (told.code != ERR_OK)
        buf_done(&c->text);
    done(op, &told);
}

void *probe_begin(struct probe_check *c, const struct probe_world *w, size_t size, const char *name,
                  const char *subject, uint64_t timeout_ms, op_abort_fn abort, op_done_fn done, void *owner)
{
    struct probe_run *run = calloc(1, size);
    struct err e = { 0 };

    *c = (struct probe_check){ .outcome = PROBE_UNKNOWN, .run = run };
    buf_init(&c->text, PROBE_TEXT_MAX);
    op_init(&c->op, w->loop, name, timeout_ms, abort, run != NULL ? probe_check_on_over : done, owner);
    op_set_subject(&c->op, subject);
    if (run == NULL) {
        err_nomem(&e);
        op_finish(&c->op, &e);
        return NULL;
    }
    run->check = c;
    run->world = *w;
    run->done = done;
    run->timeout_ms = timeout_ms;
    return run;
}

void probe_verdict(struct probe_check *c, enum probe_outcome outcome, const char *fmt, ...)
{
    va_list ap;

    if (c->op.finished)
        return;
    c->outcome = outcome;
    va_start(ap, fmt);
    buf_addv(&c->text, fmt, ap);
    va_end(ap);
    op_finish(&c->op, NULL);
}
