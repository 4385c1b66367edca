/* SPDX-License-Identifier: Apache-2.0 */
/* memory_pair - a client's and a server's session, connected in memory: no socket, no clock. */
#ifndef TESTS_UNIT_BASE_GRPC_MEMORY_PAIR_H
#define TESTS_UNIT_BASE_GRPC_MEMORY_PAIR_H
#include "../helper.h"

#include "base/grpc/session.h"

#define CALLS_MAX 64

struct answer {             /* what came back on a call */
    struct grpc_stream *st; /* NULL: it has ended */
    bool ended, unseen;
    struct grpc_status status;
    unsigned messages;
    size_t bytes;
    char first[16];
};

struct memory_pair {
    struct grpc_session *client, *server;
    struct grpc_budget client_budget, server_budget;
    uint64_t now_ms;
    struct err client_error, server_error;
    /* The server's calls that are open. */
    struct grpc_stream *calls[CALLS_MAX];
    size_t n_calls, begun, ended;
    bool echo;  /* each call is answered with its message */
    bool pause; /* the client pauses at each message */
    unsigned leaving, pongs;
};

static inline void forget_call(struct memory_pair *p, const struct grpc_stream *st)
{
    for (size_t i = 0; i < p->n_calls; i++)
        if (p->calls[i] == st)
            p->calls[i] = p->calls[--p->n_calls];
}

static inline void mp_begin(struct grpc_stream *st, void *arg)
{
    struct memory_pair *p = arg;

    p->begun++;
    p->calls[p->n_calls++] = st;
}

static inline void mp_request(struct grpc_stream *st, struct grpc_bytes message, void *arg)
{
    static const struct grpc_status fine = { .code = ERR_OK };
    struct memory_pair *p = arg;
    struct err e = { 0 };

    if (!p->echo)
        return;
    forget_call(p, st);
    if (grpc_stream_send(st, message, &e) == ERR_OK) {
        grpc_stream_finish(st, &fine);
        return;
    }
    grpc_stream_finish(st, &(struct grpc_status){ .code = (int)e.code });
}

static inline void mp_call_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen,
                                 void *arg)
{
    struct memory_pair *p = arg;

    (void)status;
    (void)unseen;
    p->ended++;
    forget_call(p, st);
}

static inline void mp_message(struct grpc_stream *st, struct grpc_bytes message, void *arg)
{
    struct memory_pair *p = arg;
    struct answer *a = grpc_stream_owner(st);

    if (a->messages++ == 0)
        snprintf(a->first, sizeof(a->first), "%.*s", (int)(message.n < 15 ? message.n : 15),
                 (const char *)message.p);
    a->bytes += message.n;
    if (p->pause)
        grpc_stream_pause(st, true);
}

static inline void mp_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg)
{
    struct answer *a = grpc_stream_owner(st);

    (void)arg;
    a->st = NULL;
    a->ended = true;
    a->unseen = unseen;
    a->status = *status;
}

static inline void mp_leaving(uint32_t error, void *arg)
{
    (void)error;
    ((struct memory_pair *)arg)->leaving++;
}

static inline void mp_pong(void *arg)
{
    ((struct memory_pair *)arg)->pongs++;
}

static const struct grpc_session_events mp_client_events = {
    .message = mp_message, .ended = mp_ended, .leaving = mp_leaving, .pong = mp_pong
};
static const struct grpc_session_events mp_server_events = { .begin = mp_begin,
                                                             .message = mp_request,
                                                             .ended = mp_call_ended };

static inline bool mp_open(struct memory_pair *p, struct err *e)
{
    struct grpc_session_options client = {
        .message_max = 1 << 20, .budget = &p->client_budget, .on = &mp_client_events, .arg = p
    };
    struct grpc_session_options server = { .server = true,
                                           .message_max = 1 << 20,
                                           .queue_max = 1 << 20,
                                           .max_streams = 10,
                                           .budget = &p->server_budget,
                                           .on = &mp_server_events,
                                           .arg = p };

    *p = (struct memory_pair){ .echo = true, .now_ms = 1 };
    p->client_budget.max = p->server_budget.max = 8 << 20;
    return grpc_session_new(&p->client, &client, e) == ERR_OK &&
           grpc_session_new(&p->server, &server, e) == ERR_OK;
}

static inline void mp_done(struct memory_pair *p)
{
    grpc_session_free(p->client);
    grpc_session_free(p->server);
}

/* Moves what one end has to say to the other, in pieces; 0: by chance. */
static inline bool mp_move(struct memory_pair *p, struct grpc_session *from, struct grpc_session *to,
                           struct err *error, size_t piece)
{
    const uint8_t *data;
    bool moved = false;
    ssize_t n;

    while ((n = grpc_session_output(from, &data)) > 0) {
        moved = true;
        for (size_t at = 0; at < (size_t)n && error->code == ERR_OK;) {
            size_t k = piece > 0 ? piece : 1 + (size_t)random() % 50;
            k = k < (size_t)n - at ? k : (size_t)n - at;
            ERR_IGNORE(grpc_session_feed(to, data + at, k, p->now_ms, error));
            at += k;
        }
    }
    return moved;
}

static inline void mp_talk(struct memory_pair *p, size_t piece)
{
    bool moved = true;

    while (moved) {
        moved = mp_move(p, p->client, p->server, &p->server_error, piece);
        moved = mp_move(p, p->server, p->client, &p->client_error, piece) || moved;
    }
}

static inline enum err_code mp_ask(struct memory_pair *p, struct answer *a, const void *request, size_t n,
                                   struct err *e)
{
    struct grpc_stream_options o = {
        .path = "/a/b", .authority = "localhost", .request = { request, n }, .owner = a
    };

    *a = (struct answer){ .ended = false };
    return grpc_stream_open(&a->st, p->client, &o, e);
}
#endif
