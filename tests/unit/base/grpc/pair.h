/* SPDX-License-Identifier: Apache-2.0 */
/* pair - a server and a channel on one loop, connected by a socket in a scratch folder. */
#ifndef TESTS_UNIT_BASE_GRPC_PAIR_H
#define TESTS_UNIT_BASE_GRPC_PAIR_H
#include "../helper.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/grpc/client.h"
#include "base/grpc/server.h"
#include "base/scope.h"

struct pair {
    uv_loop_t loop;
    char folder[64], path[96], target[104];
    struct grpc_server *server;
    struct grpc_channel *channel;
    struct grpc_request *held; /* a call that the server has not answered */
    struct grpc_request *stream;
    int cancelled;
};

static inline struct grpc_bytes bytes_of(const char *text)
{
    return (struct grpc_bytes){ (const uint8_t *)text, strlen(text) };
}

static inline void on_held_cancelled(struct grpc_request *r, void *arg)
{
    struct pair *p = arg;

    p->cancelled++;
    if (p->held == r)
        p->held = NULL;
    if (p->stream == r)
        p->stream = NULL;
}

/* Answers with what it was asked. */
static inline void serve_echo(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    (void)arg;
    grpc_reply(r, message);
}

static inline void serve_hold(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct pair *p = arg;

    (void)message;
    p->held = r;
    grpc_request_on_cancel(r, on_held_cancelled, p);
}

/* "3": three messages, then the end. */
static inline void serve_count(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    char text[16];

    (void)arg;
    for (int i = 0; i < message.p[0] - '0'; i++) {
        snprintf(text, sizeof(text), "%d", i);
        if (!grpc_send(r, bytes_of(text)))
            return;
    }
    grpc_end(r, NULL);
}

static inline void serve_open(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct pair *p = arg;

    (void)message;
    p->stream = r;
    grpc_request_on_cancel(r, on_held_cancelled, p);
}

static inline void serve_fail(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct grpc_status status = { .code = ERR_PRECONDITION, .text = "100% \xc3\xa9\nno" };

    (void)arg;
    status.details = message;
    grpc_end(r, &status);
}

static inline void serve_metadata(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    const char *v = grpc_request_metadata(r, "x-test-bin");

    (void)arg;
    (void)message;
    grpc_reply(r, bytes_of(v != NULL ? v : "none"));
}

static const struct grpc_method pair_methods[] = {
    { "/test.Pair/Echo", serve_echo },   { "/test.Pair/Hold", serve_hold },
    { "/test.Pair/Count", serve_count }, { "/test.Pair/Open", serve_open },
    { "/test.Pair/Fail", serve_fail },   { "/test.Pair/Metadata", serve_metadata },
};

static inline void pair_serve(struct pair *p, const struct grpc_server_options *more)
{
    struct grpc_server_options o = more != NULL ? *more : (struct grpc_server_options){ 0 };
    struct err e = { 0 };

    o.loop = &p->loop;
    o.path = p->path;
    o.mode = 0600;
    o.methods = pair_methods;
    o.n_methods = ARRAY_LEN(pair_methods);
    o.arg = p;
    if (grpc_server_open(&p->server, &o, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static inline void pair_connect(struct pair *p, const struct grpc_channel_options *more)
{
    struct grpc_channel_options o = more != NULL ? *more : (struct grpc_channel_options){ 0 };
    struct err e = { 0 };

    o.loop = &p->loop;
    o.target = p->target;
    if (grpc_channel_open(&p->channel, &o, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static inline void pair_make(struct pair *p)
{
    *p = (struct pair){ 0 };
    strcpy(p->folder, "/tmp/coracle-grpc-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->path, sizeof(p->path), "%s/s", p->folder);
    snprintf(p->target, sizeof(p->target), "unix:%s", p->path);
    assert_int_equal(uv_loop_init(&p->loop), 0);
}

/* Everything closes, and nothing is left. */
static inline void pair_done(struct pair *p)
{
    grpc_channel_close(take_ptr(&p->channel));
    grpc_server_close(take_ptr(&p->server));
    uv_run(&p->loop, UV_RUN_DEFAULT);
    assert_int_equal(op_count(), 0);
    assert_int_equal(uv_loop_close(&p->loop), 0);
    assert_int_equal(rmdir(p->folder), 0);
}

/* ---- calls ---- */

struct asked { /* a call, and what came of it */
    struct grpc_call call;
    bool ended;
    struct err result;
    struct grpc_status status;
    char details[64];
    struct buf response; /* of a stream: each message and a blank */
    int messages;
    void (*on_message)(struct asked *a);
};

static inline void on_asked_message(struct grpc_call *call, struct grpc_bytes message)
{
    struct asked *a = container_of(call, struct asked, call);

    buf_add(&a->response, message.p, message.n);
    buf_addc(&a->response, ' ');
    a->messages++;
    if (a->on_message != NULL)
        a->on_message(a);
}

static inline void on_answered(struct op *op, const struct err *result)
{
    struct asked *a = op->owner;

    a->ended = true;
    a->result = *result;
    a->status = a->call.status;
    if (a->status.details.n > 0)
        memcpy(a->details, a->status.details.p, a->status.details.n);
    if (a->call.response.n > 0)
        buf_add(&a->response, a->call.response.p, a->call.response.n);
}

static inline void ask_options(struct asked *a, struct pair *p, struct grpc_call_options o, bool stream)
{
    *a = (struct asked){ .ended = false, .on_message = a->on_message };
    buf_init(&a->response, 64 << 20);
    if (stream)
        o.on_message = on_asked_message;
    grpc_call_start(&a->call, p->channel, &o, on_answered, a);
    assert_false(a->ended);
}

static inline void ask(struct asked *a, struct pair *p, const char *path, const char *text,
                       uint64_t deadline_ms, bool stream)
{
    ask_options(
        a, p,
        (struct grpc_call_options){ .path = path, .request = bytes_of(text), .deadline_ms = deadline_ms },
        stream);
}

static inline void await(struct pair *p, const struct asked *a)
{
    uint64_t end = clock_mono_ms() + 20000;

    while (!a->ended) {
        uv_run(&p->loop, UV_RUN_ONCE);
        assert_true(clock_mono_ms() < end);
    }
}

#define AWAIT(p, condition)                                                                                  \
    do {                                                                                                     \
        uint64_t end_ = clock_mono_ms() + 20000;                                                             \
        while (!(condition)) {                                                                               \
            uv_run(&(p)->loop, UV_RUN_ONCE);                                                                 \
            assert_true(clock_mono_ms() < end_);                                                             \
        }                                                                                                    \
    } while (0)
#endif
