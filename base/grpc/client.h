/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client - a connection to one gRPC server, and calls on it. Loop thread only.
 *
 * A channel connects when a call needs it. When its connection ends (EOF, error, GOAWAY, an unanswered ping),
 * calls in progress end with ERR_UNAVAILABLE. Calls that were not sent yet, or that a GOAWAY names as not
 * processed, are sent on the next connection within their deadline. Reconnects back off (1 s, x 1.6, +-20%,
 * at most `backoff_max_ms`) and happen only while a call waits. No timer runs without a call, except the
 * keep-alive of an open stream.
 */
#ifndef BASE_GRPC_CLIENT_H
#define BASE_GRPC_CLIENT_H
#include "base/grpc/grpc.h"
#include "base/op.h"

struct grpc_channel;

struct grpc_channel_options { /* borrowed during grpc_channel_open() */
    uv_loop_t *loop;
    const char *target;        /* "unix:/path", "10.0.0.1:80", "[::1]:80"; names are not resolved */
    const char *authority;     /* NULL: "localhost" */
    const char *user_agent;    /* NULL: none */
    size_t message_max;        /* limit of a received message; 0: GRPC_MESSAGE_MAX */
    uint64_t connect_ms;       /* limit for a connect and the server's SETTINGS; 0: 10 s */
    uint64_t keepalive_ms;     /* without a byte for so long while a call is open, a ping is sent; 0: never */
    uint64_t keepalive_out_ms; /* limit for the answer to a ping; 0: 20 s */
    uint64_t backoff_max_ms;   /* 0: 2 min */
    bool once;                 /* never reconnects: calls after the end of its connection fail at once */
    void (*on_end)(struct grpc_channel *c, const struct err *why,
                   void *arg); /* its connection ended; may be NULL */
    void *arg;
};

enum err_code grpc_channel_open(struct grpc_channel **ret, const struct grpc_channel_options *o,
                                struct err *e) MUST_CHECK;
/* Calls in progress end with ERR_CANCELLED; memory and handles are freed on later turns. NULL is fine. */
void grpc_channel_close(struct grpc_channel *c);
/* Process and user of the connected server (SO_PEERCRED of a unix socket); false: not connected, or not a
 * unix socket. */
bool grpc_channel_peer(const struct grpc_channel *c, pid_t *ret_pid, uid_t *ret_uid);

/*
 * A call: an operation (base/op.h). Its result is OK if the status is OK. Otherwise the code is that of the
 * status, and the text has grpc-go's form: "rpc error: code = Internal desc = <the server's text>". A passed
 * deadline results in "... code = DeadlineExceeded desc = context deadline exceeded", and the server gets it
 * as grpc-timeout.
 */
struct grpc_call {
    struct op op;
    struct grpc_status status;        /* valid in done */
    struct grpc_bytes response;       /* unary: valid in done if the result is OK */
    const struct grpc_metadata *head; /* the response's headers and trailers; valid in done */
    size_t n_head;
    bool sent;                 /* the call reached a server; valid in done */
    struct grpc_call_run *run; /* private */
};

/* Names of the operations. A stream lasts as long as its server, so a long one is no sign of a problem. */
#define GRPC_CALL "grpc call"
#define GRPC_STREAM "grpc stream"

struct grpc_call_options {
    const char *path;          /* "/v1beta1.DevicePlugin/Allocate" */
    struct grpc_bytes request; /* copied */
    uint64_t deadline_ms;      /* 0: none (streams) */
    const struct grpc_metadata *metadata;
    size_t n_metadata;
    /* A server stream: called for each message, whose bytes are valid during the call; NULL: unary. It may
     * cancel or pause the call. */
    void (*on_message)(struct grpc_call *c, struct grpc_bytes message);
};

void grpc_call_start(struct grpc_call *call, struct grpc_channel *c, const struct grpc_call_options *o,
                     op_done_fn done, void *owner);
/* True: flow control stops the server. False: messages that have arrived are delivered within this call. When
 * the connection ends, messages that were not delivered are lost, as if they had not arrived. */
void grpc_call_pause(struct grpc_call *call, bool on);
#endif
