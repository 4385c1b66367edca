/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the two halves of the server: connections (server.c) and calls (request.c). */
#ifndef BASE_GRPC_SERVING_H
#define BASE_GRPC_SERVING_H
#include "base/grpc/address.h"
#include "base/grpc/server.h"
#include "base/grpc/wire.h"
#include "base/list.h"

#define GRPC_SERVER_STREAMS_MAX 100 /* calls of a connection: the minimum that RFC 9113 recommends */
#define GRPC_SERVER_QUEUE_MAX (4 * 1024 * 1024) /* bytes that wait in a connection, besides one message */
#define GRPC_SERVER_BUDGET ((size_t)32 * 1024 * 1024) /* bytes of all connections, received and queued */

struct grpc_conn {
    LIST_ENTRY(grpc_conn) all;
    struct grpc_server *server;
    struct grpc_wire *wire;
    LIST_HEAD(, grpc_request) requests;
    uint64_t since_ms;          /* accepted, or its latest call ended */
    uint64_t taken, stalled_ms; /* bytes sent, and when the current stall began */
    bool greeted, closing, peer_known;
    pid_t pid;
    uid_t uid;
};

struct grpc_request {
    LIST_ENTRY(grpc_request) all;
    struct grpc_conn *conn;
    struct grpc_stream *stream;
    const struct grpc_method *method;
    uint64_t deadline_ms; /* uv_now(); 0: none */
    bool asked;           /* the request's message has arrived */
    void (*on_cancel)(struct grpc_request *r, void *arg);
    void *cancel_arg;
};

struct grpc_server {
    struct grpc_server_options o;
    char *path;
    int fd;
    dev_t dev;
    ino_t ino;
    uv_poll_t listener;
    uv_timer_t
        timer; /* runs while a deadline is pending: of a greeting, of a call, of the next try to accept */
    uint64_t due_ms, rests_until_ms;
    LIST_HEAD(, grpc_conn) conns;
    unsigned n_conns; /* connections that are not closing */
    struct grpc_budget budget;
    uint64_t greeting_ms, stall_ms, rest_ms; /* tests shorten them */
    uint64_t tokens, filled_ms;              /* thousandths of calls that may begin now */
    int open_handles;
    bool closing, checking;
};

/* ---- server.c ---- */
void grpc_server_due(struct grpc_server *s); /* a deadline may have changed */
/* Sends the queued bytes; a deadline runs while the client does not read them. */
void grpc_conn_flush(struct grpc_conn *c);

/* ---- request.c ---- */
void grpc_request_begin(struct grpc_stream *st, void *arg);
void grpc_request_message(struct grpc_stream *st, struct grpc_bytes message, void *arg);
void grpc_request_asked(struct grpc_stream *st, void *arg);
void grpc_request_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg);
void grpc_request_expire(struct grpc_request *r);
#endif
