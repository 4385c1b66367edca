/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - one HTTP/2 connection with gRPC calls, as a client or as a server. No I/O and no clock: bytes in
 * (grpc_session_feed), events, bytes out (grpc_session_output).
 *
 * A call is a stream with one request message and any number of answers. Events come from within feed(),
 * output() and grpc_stream_pause(). An event may begin, answer, pause and end streams; it must not call
 * feed() or output(), or free the session.
 *
 * Limits against a hostile peer: headers and messages; a paused stream receives at most its window (64 KiB)
 * and one message; messages that wait to be sent (queue_max); everything received and queued together
 * (budget); the rate of control frames, beyond which the connection ends with ENHANCE_YOUR_CALM. nghttp2
 * itself limits answers to pings and settings, and entries of settings.
 */
#ifndef BASE_GRPC_SESSION_H
#define BASE_GRPC_SESSION_H
#include "base/error.h"
#include "base/grpc/frame.h"
#include "base/grpc/grpc.h"

#include <stdbool.h>
#include <sys/types.h>

/* Frames without data: a burst, a rate per second, and some more for each frame that was sent. grpc-go and
 * gRPC's core send one ping for each frame of data at most. */
#define GRPC_CONTROL_BURST 1000
#define GRPC_CONTROL_PER_S 100

struct grpc_session;
struct grpc_stream;

struct grpc_session_events {
    /* The peer's SETTINGS have arrived: it speaks HTTP/2. */
    void (*greeted)(void *arg);
    /* Server: a call begins. Its headers are known, its message follows. The event may end it. */
    void (*begin)(struct grpc_stream *st, void *arg);
    void (*message)(struct grpc_stream *st, struct grpc_bytes message, void *arg);
    /* Server: the client sends no more messages. */
    void (*asked)(struct grpc_stream *st, void *arg);
    /* The stream has ended and is freed afterwards. Client: *status is the server's, or the reason why there
     * is none. `unseen`: the server has not processed the call. Server: the client cancelled it. */
    void (*ended)(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg);
    void (*leaving)(uint32_t http2_error, void *arg); /* GOAWAY: no new calls; NULL */
    void (*pong)(void *arg);                          /* NULL */
};

struct grpc_session_options {
    bool server;
    size_t message_max;   /* of a received message */
    size_t queue_max;     /* bytes of messages that wait to be sent, of all streams; one message is always
                             accepted */
    uint32_t max_streams; /* server */
    struct grpc_budget *budget;           /* borrowed; NULL: unlimited */
    const struct grpc_session_events *on; /* borrowed */
    void *arg;
};

enum err_code grpc_session_new(struct grpc_session **ret, const struct grpc_session_options *o,
                               struct err *e) MUST_CHECK;
/* Without events. NULL is fine. */
void grpc_session_free(struct grpc_session *s);
void grpc_session_silence(struct grpc_session *s); /* no more events */

/* After an error the output must still be sent (it has the reason for the peer), then the connection must
 * end. now_ms: any clock that only goes forward. */
enum err_code grpc_session_feed(struct grpc_session *s, const uint8_t *data, size_t n, uint64_t now_ms,
                                struct err *e) MUST_CHECK;
/* The next bytes to send, valid until the next call; 0: none now; < 0: the connection must end. */
ssize_t grpc_session_output(struct grpc_session *s, const uint8_t **ret);
bool grpc_session_over(const struct grpc_session *s); /* neither side has anything to send */
bool grpc_session_greeted(const struct grpc_session *s);
bool grpc_session_can_ask(const struct grpc_session *s); /* client: a call can begin on it */
/* Bytes of messages that wait to be sent; *ret_taken: all bytes sent so far. */
size_t grpc_session_queued(const struct grpc_session *s, uint64_t *ret_taken);
size_t grpc_session_streams(const struct grpc_session *s); /* streams that the owner has not forgotten */
/* The connection ended: all streams end with ERR_UNAVAILABLE and this text. */
void grpc_session_lost(struct grpc_session *s, const char *text);
void grpc_session_ping(struct grpc_session *s);
void grpc_session_goaway(
    struct grpc_session *s); /* no new calls; the connection is over after the last one */

/* ---- streams ---- */

struct grpc_stream_options {
    const char *path, *authority, *user_agent; /* user_agent NULL: none */
    uint64_t timeout_ms;                       /* 0: none */
    struct grpc_bytes request;                 /* borrowed until the stream has ended */
    const struct grpc_metadata *metadata;
    size_t n_metadata;
    void *owner;
};
/* Client. */
enum err_code grpc_stream_open(struct grpc_stream **ret, struct grpc_session *s,
                               const struct grpc_stream_options *o, struct err *e) MUST_CHECK;

void *grpc_stream_owner(const struct grpc_stream *st);
void grpc_stream_set_owner(struct grpc_stream *st, void *owner);
const char *grpc_stream_path(const struct grpc_stream *st); /* server */
bool grpc_stream_timeout(const struct grpc_stream *st, uint64_t *ret_ms);
const struct grpc_metadata *grpc_stream_metadata(const struct grpc_stream *st, size_t *ret_n);
/* Owned by the caller: grpc_metadata_free(). */
struct grpc_metadata *grpc_stream_take_metadata(struct grpc_stream *st, size_t *ret_n);
void grpc_metadata_free(struct grpc_metadata *m, size_t n);
/* True: flow control stops the peer, and messages that arrived are kept. False: they are delivered within
 * this call. */
void grpc_stream_pause(struct grpc_stream *st, bool on);
/* Server: copies a message into the queue. ERR_EXHAUSTED: the queue is full. */
enum err_code grpc_stream_send(struct grpc_stream *st, struct grpc_bytes message, struct err *e) MUST_CHECK;
/* Server: sends the status after the queued messages. The stream is freed afterwards, without an event. */
void grpc_stream_finish(struct grpc_stream *st, const struct grpc_status *status);
/* Resets the stream; queued messages are dropped. The stream is freed afterwards, without an event. */
void grpc_stream_cancel(struct grpc_stream *st);
#endif
