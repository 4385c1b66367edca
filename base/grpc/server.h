/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - a gRPC server on a unix socket. Loop thread only.
 *
 * The socket's folder must exist. A socket at the path is replaced atomically: the new one is bound beside it
 * and renamed. Limits:
 * - connections: beyond the limit, the connection without a call for the longest time is closed, or the new
 *   one if all have calls; a client that does not send its SETTINGS within 10 s is disconnected;
 * - calls of a connection (100) and a rate of calls;
 * - 4 MiB wait for a slow reader, besides one message; then its stream ends with RESOURCE_EXHAUSTED. A client
 *   that reads nothing for a minute is disconnected;
 * - 32 MiB and two messages are received and queued for all connections together.
 */
#ifndef BASE_GRPC_SERVER_H
#define BASE_GRPC_SERVER_H
#include "base/grpc/grpc.h"
#include "base/op.h"

#include <sys/types.h>

struct grpc_server;
struct grpc_request; /* one call, until it is answered */

struct grpc_method {
    const char *path;
    /* Answers now or later, with grpc_reply(), or grpc_send() and grpc_end(). `message` is valid during the
     * call. */
    void (*begin)(struct grpc_request *r, struct grpc_bytes message, void *arg);
};

struct grpc_server_options { /* methods and arg are borrowed while the server exists */
    uv_loop_t *loop;
    const char *path;
    mode_t mode;    /* of the socket */
    bool root_only; /* other peers are refused with PERMISSION_DENIED */
    const struct grpc_method *methods;
    size_t n_methods; /* calls of other methods get UNIMPLEMENTED, with grpc-go's text */
    void *arg;
    size_t message_max;          /* 0: GRPC_MESSAGE_MAX */
    unsigned max_connections;    /* 0: 64 */
    unsigned calls_per_s, burst; /* calls of all connections; beyond that RESOURCE_EXHAUSTED; 0: unlimited */
};

enum err_code grpc_server_open(struct grpc_server **ret, const struct grpc_server_options *o,
                               struct err *e) MUST_CHECK;
/* Requests that are not answered end (on_cancel). The socket file is removed, unless another server has
 * replaced it. */
void grpc_server_close(struct grpc_server *s);

/* fn is called once if the client cancels, its deadline passes, or its connection ends before the answer; the
 * request is freed afterwards. */
void grpc_request_on_cancel(struct grpc_request *r, void (*fn)(struct grpc_request *r, void *arg), void *arg);
bool grpc_request_peer(const struct grpc_request *r, pid_t *ret_pid, uid_t *ret_uid);
const char *grpc_request_metadata(const struct grpc_request *r, const char *name); /* NULL: none */

/* Each of these functions ends and frees the request. */
void grpc_reply(struct grpc_request *r, struct grpc_bytes message);      /* one message, status OK */
void grpc_end(struct grpc_request *r, const struct grpc_status *status); /* NULL: OK */
void grpc_fail(struct grpc_request *r, const struct err *e);             /* code and text of the error */
/* A message of a stream. False: the client does not read, and the stream was ended. */
bool grpc_send(struct grpc_request *r, struct grpc_bytes message) MUST_CHECK;
#endif
