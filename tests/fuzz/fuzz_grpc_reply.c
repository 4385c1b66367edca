/* SPDX-License-Identifier: Apache-2.0 */
/* What a gRPC server sends: HTTP/2 frames, headers, message frames. A unary call, a stream that is paused and
 * goes on, and one that is cancelled are open. */
#include "base/grpc/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 3
#define BUDGET (1 << 20)

struct talk {
    struct grpc_session *session;
    struct grpc_stream *streams[CALLS];
    unsigned messages;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_calls(void *arg)
{
    static const char request[] = "\x0a\x03web";
    struct talk *t = arg;

    for (size_t i = 0; i < CALLS; i++) {
        struct grpc_stream_options o = {
            .path = "/grpc.health.v1.Health/Check",
            .authority = "10.0.0.1:50051",
            .timeout_ms = 1000,
            .request = { (const uint8_t *)request, sizeof(request) - 1 },
            .owner = &t->streams[i],
        };
        struct err e = { 0 };
        if (grpc_stream_open(&t->streams[i], t->session, &o, &e) != ERR_OK)
            abort();
    }
}

static void on_message(struct grpc_stream *st, struct grpc_bytes message, void *arg)
{
    struct talk *t = arg;
    unsigned sum = 0;

    for (size_t i = 0; i < message.n; i++)
        sum += message.p[i];
    t->messages++;
    if (st == t->streams[1] && sum % 2 == 1)
        grpc_stream_pause(st, true);
    if (st == t->streams[2]) {
        t->streams[2] = NULL;
        grpc_stream_cancel(st);
    }
}

static void on_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg)
{
    struct grpc_stream **at = grpc_stream_owner(st);
    size_t n;
    const struct grpc_metadata *m = grpc_stream_metadata(st, &n);

    (void)unseen;
    (void)arg;
    assert(*at == st);
    assert(strlen(status->text) < sizeof(status->text) && status->details.n <= GRPC_DETAILS_MAX);
    assert(n <= GRPC_METADATA_MAX);
    for (size_t i = 0; i < n; i++)
        assert(m[i].value[m[i].value_n] == '\0');
    *at = NULL;
}

static void drain(struct talk *t)
{
    const uint8_t *out;

    while (grpc_session_output(t->session, &out) > 0)
        continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct grpc_session_events events = { .greeted = open_calls,
                                                       .message = on_message,
                                                       .ended = on_ended };
    struct grpc_budget budget = { .max = BUDGET };
    struct talk t = { .session = NULL };
    struct grpc_session_options o = { .message_max = 16384, .budget = &budget, .on = &events, .arg = &t };
    struct err e = { 0 };

    if (grpc_session_new(&t.session, &o, &e) != ERR_OK)
        abort();
    drain(&t);
    /* The first byte says in which pieces. */
    for (size_t at = 0, piece = size > 0 ? 1 + data[0] : 1; at < size && e.code == ERR_OK; at += piece) {
        ERR_IGNORE(grpc_session_feed(t.session, data + at, piece < size - at ? piece : size - at, at, &e));
        if (t.streams[1] != NULL && at % 3 == 0)
            grpc_stream_pause(t.streams[1], false);
        drain(&t);
        assert(budget.used <= budget.max);
    }
    grpc_session_lost(t.session, "EOF");
    assert(grpc_session_streams(t.session) == 0);
    grpc_session_free(t.session);
    assert(budget.used == 0);
    return 0;
}
