/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a channel. */
#include "base/grpc/channel.h"

#include "base/grpc/status.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 5 /* tries of a call that servers refuse without processing it */

static struct grpc_runs *list_of(struct grpc_call_run *run)
{
    return run->stream != NULL ? &run->channel->active : &run->channel->waiting;
}

/* ---- the end ---- */

static void run_free(struct grpc_call_run *run)
{
    grpc_metadata_free(run->head, run->n_head);
    free(run->response);
    free(run->details);
    free(run);
}

static void call_over(struct op *op, const struct err *result)
{
    struct grpc_call *call = container_of(op, struct grpc_call, op);
    struct grpc_call_run *run = take_ptr(&call->run);

    if (result->code != ERR_OK)
        call->response = (struct grpc_bytes){ 0 };
    run->done(op, result);
    run_free(run);
}

/* The call is in no list and on no stream; done follows. */
static void run_finish(struct grpc_call_run *run)
{
    struct grpc_call *call = run->call;
    const struct grpc_status *s = &call->status;
    char room[GRPC_CODE_SIZE];
    struct err e = { 0 };

    run->channel = NULL;
    call->head = run->head;
    call->n_head = run->n_head;
    if (s->code != ERR_OK) {
        err_set(&e, (enum err_code)s->code, "rpc error: code = %s desc = %s", grpc_status_name(s, room),
                s->text);
        if (call->op.why.code != ERR_OK)
            op_set_why(&call->op, &e);
    }
    op_finish(&call->op, &e);
}

/* Off the list and the stream. */
static void run_detach(struct grpc_call_run *run)
{
    TAILQ_REMOVE(list_of(run), run, link);
    run->stream = NULL;
    run->on = NULL;
}

static void run_cancel_stream(struct grpc_call_run *run)
{
    struct grpc_stream *st = run->stream;
    struct grpc_link *on = run->on;

    run_detach(run);
    if (st == NULL)
        return;
    grpc_stream_cancel(st);
    grpc_wire_flush(on->wire);
}

void grpc_run_fail(struct grpc_call_run *run, int code, const char *fmt, ...)
{
    struct grpc_status *s = &run->call->status;
    struct grpc_channel *c = run->channel;
    va_list ap;

    *s = (struct grpc_status){ .code = code };
    va_start(ap, fmt);
    vsnprintf(s->text, sizeof(s->text), fmt, ap);
    va_end(ap);
    run_cancel_stream(run);
    run_finish(run);
    if (c->state != GRPC_CHANNEL_BROKEN)
        grpc_channel_step(c);
}

static void call_abort(struct op *op)
{
    struct grpc_call *call = container_of(op, struct grpc_call, op);
    struct grpc_call_run *run = call->run;

    if (run->channel == NULL)
        return;
    if (op->why.code != ERR_DEADLINE)
        grpc_run_fail(run, ERR_CANCELLED, "context canceled");
    else if (run->stream == NULL && run->channel->last.code != ERR_OK)
        grpc_run_fail(run, ERR_DEADLINE, "latest balancer error: %s", run->channel->last.text);
    else
        grpc_run_fail(run, ERR_DEADLINE, "context deadline exceeded");
}

/* ---- the answer ---- */

static void take_response(struct grpc_call_run *run, struct grpc_bytes message)
{
    if (run->delivered) {
        grpc_run_fail(run, ERR_INTERNAL,
                      "cardinality violation: expected <EOF> for non server-streaming RPCs, but received "
                      "another message");
        return;
    }
    run->response = malloc(message.n > 0 ? message.n : 1);
    if (run->response == NULL) {
        grpc_run_fail(run, ERR_EXHAUSTED, "out of memory");
        return;
    }
    if (message.n > 0)
        memcpy(run->response, message.p, message.n);
    run->call->response = (struct grpc_bytes){ run->response, message.n };
    run->delivered = true;
}

void grpc_run_message(struct grpc_stream *st, struct grpc_bytes message, void *arg)
{
    struct grpc_call_run *run = grpc_stream_owner(st);

    (void)arg;
    if (run->on_message == NULL) {
        take_response(run, message);
        return;
    }
    run->delivered = true;
    run->on_message(run->call, message);
}

static bool may_retry(const struct grpc_call_run *run, const struct grpc_status *status)
{
    return status->code == ERR_UNAVAILABLE && !run->delivered && run->tries < TRIES_MAX;
}

static void keep_status(struct grpc_call_run *run, const struct grpc_status *status)
{
    struct grpc_status *s = &run->call->status;

    *s = *status;
    s->details = (struct grpc_bytes){ 0 };
    if (status->details.n > 0)
        run->details = malloc(status->details.n);
    if (run->details != NULL) { /* out of memory: they are left out, because callers act on the code */
        memcpy(run->details, status->details.p, status->details.n);
        s->details = (struct grpc_bytes){ run->details, status->details.n };
    }
    if (s->code == ERR_OK && run->on_message == NULL && !run->delivered)
        grpc_status_set(s, ERR_INTERNAL,
                        "cardinality violation: received no response message from non-server-streaming RPC");
}

void grpc_run_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg)
{
    struct grpc_call_run *run = grpc_stream_owner(st);
    struct grpc_channel *c = run->channel;

    (void)arg;
    run_detach(run);
    if (unseen && may_retry(run, status)) {
        TAILQ_INSERT_TAIL(&c->waiting, run, link);
    } else {
        run->head = grpc_stream_take_metadata(st, &run->n_head);
        keep_status(run, status);
        run_finish(run);
    }
    grpc_channel_step(c);
}

/* ---- the start ---- */

void grpc_run_send(struct grpc_call_run *run, struct grpc_link *on)
{
    const struct grpc_channel *c = run->channel;
    uint64_t now = uv_now(c->o.loop);
    struct grpc_stream_options o = {
        .path = run->path,
        .authority = c->o.authority,
        .user_agent = c->o.user_agent,
        .request = run->request,
        .metadata = run->metadata,
        .n_metadata = run->n_metadata,
        .owner = run,
    };
    struct grpc_stream *st = NULL;
    struct err e = { 0 };

    if (run->deadline_ms > 0)
        o.timeout_ms = run->deadline_ms > now ? run->deadline_ms - now : 1;
    if (grpc_stream_open(&st, grpc_wire_session(on->wire), &o, &e) != ERR_OK) {
        grpc_run_fail(run, (int)e.code, "%s", e.text);
        return;
    }
    TAILQ_REMOVE(&run->channel->waiting, run, link);
    run->stream = st;
    run->on = on;
    run->tries++;
    run->call->sent = true;
    TAILQ_INSERT_TAIL(&run->channel->active, run, link);
    if (run->paused)
        grpc_stream_pause(st, true);
}

static size_t size_of(const struct grpc_call_options *o)
{
    size_t n =
        strlen(o->path) + 1 + o->request.n + o->n_metadata * sizeof(*o->metadata) + sizeof(max_align_t);

    for (size_t i = 0; i < o->n_metadata; i++)
        n += strlen(o->metadata[i].name) + o->metadata[i].value_n + 2;
    return n;
}

static char *pack(uint8_t **at, const void *p, size_t n)
{
    char *to = (char *)*at;

    if (n > 0)
        memcpy(to, p, n);
    to[n] = '\0';
    *at += n + 1;
    return to;
}

static struct grpc_call_run *run_new(const struct grpc_call_options *o)
{
    struct grpc_call_run *run = calloc(1, sizeof(*run) + size_of(o));
    uint8_t *at;

    if (run == NULL)
        return NULL;
    /* Directly behind the struct, so it is aligned. */
    run->metadata = (struct grpc_metadata *)(void *)(run + 1);
    run->n_metadata = o->n_metadata;
    at = (uint8_t *)(run->metadata + o->n_metadata);
    for (size_t i = 0; i < o->n_metadata; i++) {
        const struct grpc_metadata *m = &o->metadata[i];
        run->metadata[i].name = pack(&at, m->name, strlen(m->name));
        run->metadata[i].value = pack(&at, m->value, m->value_n);
        run->metadata[i].value_n = m->value_n;
    }
    run->path = pack(&at, o->path, strlen(o->path));
    run->request = (struct grpc_bytes){ (uint8_t *)pack(&at, o->request.p, o->request.n), o->request.n };
    return run;
}

void grpc_call_start(struct grpc_call *call, struct grpc_channel *c, const struct grpc_call_options *o,
                     op_done_fn done, void *owner)
{
    struct grpc_call_run *run = run_new(o);
    struct err e = { 0 };

    *call = (struct grpc_call){ .run = run };
    op_init(&call->op, c->o.loop, o->on_message != NULL ? GRPC_STREAM : GRPC_CALL, o->deadline_ms,
            run != NULL ? call_abort : NULL, run != NULL ? call_over : done, owner);
    op_set_subject(&call->op, o->path);
    if (run == NULL) {
        err_nomem(&e);
        grpc_status_set(&call->status, ERR_EXHAUSTED, "out of memory");
        op_finish(&call->op, &e);
        return;
    }
    run->call = call;
    run->channel = c;
    run->done = done;
    run->on_message = o->on_message;
    run->deadline_ms = o->deadline_ms > 0 ? uv_now(c->o.loop) + o->deadline_ms : 0;
    TAILQ_INSERT_TAIL(&c->waiting, run, link);
    grpc_channel_step(c);
}

void grpc_call_pause(struct grpc_call *call, bool on)
{
    struct grpc_call_run *run = call->run;
    struct grpc_link *link;

    if (run == NULL || run->channel == NULL)
        return;
    run->paused = on;
    if (run->stream == NULL)
        return;
    link = run->on;
    grpc_stream_pause(run->stream, on);
    grpc_wire_flush(link->wire);
}
