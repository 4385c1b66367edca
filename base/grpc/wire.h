/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire - a session on a socket of the loop. While the peer is silent, it has no timer and no buffer.
 *
 * on_end is called from the loop, never within grpc_wire_flush(): the next read reports a failed write.
 */
#ifndef BASE_GRPC_WIRE_H
#define BASE_GRPC_WIRE_H
#include "base/grpc/session.h"

#include <uv.h>

struct grpc_wire;

struct grpc_wire_options {
    uv_loop_t *loop;
    int fd;                        /* a non-blocking socket; owned by the wire, also on failure */
    bool connecting;               /* connect() is in progress */
    struct grpc_session *session;  /* owned by the wire on success */
    void (*on_connect)(void *arg); /* NULL */
    void (*on_flushed)(
        void *arg); /* after the events of received bytes and the answers to them; may be NULL */
    void (*on_end)(const struct err *why, void *arg); /* at most once; then the owner closes it */
    void *arg;
};

enum err_code grpc_wire_open(struct grpc_wire **ret, const struct grpc_wire_options *o,
                             struct err *e) MUST_CHECK;
/* Sends the session's output. False: called within an event of the session, after which the output is sent
 * anyway. */
bool grpc_wire_flush(struct grpc_wire *w);
/* Writes as much as the socket accepts at once. Session and socket are freed on a later turn, then
 * closed(arg) is called. NULL is fine. */
void grpc_wire_close(struct grpc_wire *w, void (*closed)(void *arg));
struct grpc_session *grpc_wire_session(const struct grpc_wire *w);
uint64_t grpc_wire_heard_ms(const struct grpc_wire *w); /* uv_now() of the last byte received */
bool grpc_wire_peer(const struct grpc_wire *w, pid_t *ret_pid, uid_t *ret_uid);
#endif
