/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of base/grpc: the structs of a session and its streams. */
#ifndef BASE_GRPC_INTERNAL_H
#define BASE_GRPC_INTERNAL_H
#include "base/grpc/session.h"
#include "base/list.h"

#include <nghttp2/nghttp2.h>

struct grpc_outgoing { /* a message that waits to be sent, with its prefix */
    STAILQ_ENTRY(grpc_outgoing) link;
    size_t n;
    uint8_t data[];
};

struct grpc_trailer {
    int code;
    char *message; /* encoded; NULL: none */
    char *details; /* base64; NULL: none */
};

struct grpc_stream {
    LIST_ENTRY(grpc_stream) all;
    struct grpc_session *session;
    int32_t id;
    void *owner;
    bool over;      /* the owner has forgotten it */
    bool closed;    /* nghttp2 has closed it */
    bool begun;     /* server: its begin event was sent */
    bool sent;      /* client: the request's headers */
    bool answering; /* server: the response's headers were submitted */
    bool deferred;  /* nothing to send at the moment */
    bool finishing; /* the trailer is sent after the queue */
    bool head_done; /* the peer's first headers are complete */
    bool peer_done; /* the peer's END_STREAM has arrived */
    bool paused, delivering;
    /* Server: of the request's headers. */
    bool malformed, regular; /* regular: a field that is not a pseudo-header has arrived */
    unsigned pseudo;         /* pseudo-headers that have arrived */
    /* Received. */
    struct grpc_frames frames;
    uint8_t *held; /* arrived while paused */
    size_t held_n;
    size_t header_size; /* size of this block of headers, by RFC 9113's rule */
    size_t charged;     /* bytes of the budget for stored headers */
    int http_status;
    bool not_post;
    char content_type[96];
    char encoding[32];
    char timeout[16];
    bool has_timeout;
    uint64_t timeout_ms;
    char *path;
    int code;         /* grpc-status; -1: none */
    char *text;       /* grpc-message, decoded; NULL: none */
    uint8_t *details; /* decoded */
    size_t n_details;
    const char *fault; /* constant: why the stream ends, if this end detected the reason */
    int fault_code;
    struct grpc_metadata *metadata;
    size_t n_metadata;
    /* To be sent. */
    struct grpc_bytes request; /* client: borrowed */
    uint8_t request_head[GRPC_FRAME_HEAD];
    STAILQ_HEAD(, grpc_outgoing) queue;
    size_t at; /* in the request or the first of the queue */
    struct grpc_trailer trailer;
};

struct grpc_session {
    nghttp2_session *http;
    struct grpc_session_options o;
    LIST_HEAD(, grpc_stream) streams;
    size_t n_streams; /* not over */
    size_t queued;
    uint64_t taken; /* bytes of messages that were sent, ever */
    bool greeted, flooded;
    bool broken;          /* nghttp2 failed; it may only be deleted */
    unsigned control;     /* frames that may still arrive */
    uint64_t refilled_ms; /* when `control` grew last; 0: never */
};

/* ---- session.c ---- */
struct grpc_stream *grpc_stream_of(struct grpc_session *s, int32_t id); /* NULL: unknown */

/* ---- stream.c ---- */
struct grpc_stream *grpc_stream_new(struct grpc_session *s);
void grpc_stream_free(struct grpc_stream *st);
/* The owner forgets the stream; it is freed when nghttp2 has closed it, too. */
void grpc_stream_forget(struct grpc_stream *st);
void grpc_stream_release(struct grpc_stream *st);
/* Calls ended() with this status. */
void grpc_stream_end(struct grpc_stream *st, int code, bool unseen, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* DATA from the peer: messages are delivered, or kept while paused. */
void grpc_stream_take(struct grpc_stream *st, const uint8_t *data, size_t n);
/* The peer's side is complete: checks it, unless messages are kept. */
void grpc_stream_peer_done(struct grpc_stream *st);
/* Server: the request's headers are malformed. */
void grpc_stream_reject(struct grpc_stream *st);
/* Client: the status of the answer, or a status with the reason why there is none. */
void grpc_stream_conclude(struct grpc_stream *st);

/* ---- request_head.c ---- */
/* Server, for each field, and when a block of them is complete. False: the request is malformed. */
bool grpc_request_field_fits(struct grpc_stream *st, const char *name, size_t name_n, const char *value,
                             size_t value_n);
bool grpc_request_head_fits(const struct grpc_stream *st);

/* ---- stream_headers.c ---- */
/* False: over the limit of a call. */
bool grpc_stream_header(struct grpc_stream *st, const char *name, size_t name_n, const char *value,
                        size_t value_n);
/* A block of headers is complete. */
void grpc_stream_head_done(struct grpc_stream *st);

/* ---- stream_send.c ---- */
ssize_t grpc_stream_read(nghttp2_session *http, int32_t id, uint8_t *out, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *arg);
void grpc_stream_drop_queue(struct grpc_stream *st);
/* Server: an HTTP answer, for a request that is not gRPC. */
void grpc_stream_refuse(struct grpc_stream *st, int http_status, int code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
#endif
