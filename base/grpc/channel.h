/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the two halves of the client: connections (client.c) and calls (call.c). */
#ifndef BASE_GRPC_CHANNEL_H
#define BASE_GRPC_CHANNEL_H
#include "base/grpc/address.h"
#include "base/grpc/client.h"
#include "base/grpc/wire.h"
#include "base/list.h"

struct grpc_link { /* one connection of a channel */
    LIST_ENTRY(grpc_link) all;
    struct grpc_channel *channel;
    struct grpc_wire *wire;
    bool dialing, pinged;
};

enum grpc_channel_state {
    GRPC_CHANNEL_IDLE,
    GRPC_CHANNEL_CONNECTING, /* until the server's SETTINGS arrive */
    GRPC_CHANNEL_READY,
    GRPC_CHANNEL_RESTING, /* the pause before the next connect */
    GRPC_CHANNEL_BROKEN,  /* `once` */
};

TAILQ_HEAD(grpc_runs, grpc_call_run);

struct grpc_channel {
    struct grpc_channel_options o;
    struct grpc_address address;
    enum grpc_channel_state state;
    struct grpc_link *link;       /* for new calls; NULL: none */
    LIST_HEAD(, grpc_link) links; /* including those that a GOAWAY closed to new calls */
    struct grpc_runs waiting, active;
    uv_timer_t timer; /* by state: end of the connect, end of the pause, the next ping */
    uint64_t pause_ms, rests_until_ms;
    struct err last; /* why the latest connection failed, or ERR_OK */
    bool closing, timer_closed;
    char *texts[3];
};

struct grpc_call_run { /* a call between its start and its done; texts and request follow it in memory */
    TAILQ_ENTRY(grpc_call_run) link;
    struct grpc_call *call;
    struct grpc_channel *channel; /* NULL: the call is over */
    struct grpc_stream *stream;   /* NULL: it waits for a connection */
    struct grpc_link *on;         /* the connection of its stream */
    op_done_fn done;
    void (*on_message)(struct grpc_call *c, struct grpc_bytes message);
    uint64_t deadline_ms; /* uv_now(); 0: none */
    unsigned tries;
    bool paused, delivered;
    uint8_t *response;
    uint8_t *details;
    struct grpc_metadata *head;
    size_t n_head;
    char *path;
    struct grpc_bytes request;
    struct grpc_metadata *metadata;
    size_t n_metadata;
};

/* ---- client.c ---- */
/* The list of waiting calls changed. */
void grpc_channel_step(struct grpc_channel *c);

/* ---- call.c ---- */
void grpc_run_send(struct grpc_call_run *run, struct grpc_link *on);
void grpc_run_message(struct grpc_stream *st, struct grpc_bytes message, void *arg);
void grpc_run_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg);
void grpc_run_fail(struct grpc_call_run *run, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
#endif
