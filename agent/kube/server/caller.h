/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller - a client of a listener of coracle-kube: its connection, its requests one by one, answers, and the
 * daemon's answers passed on to it. The node's port and the local API (agent/kube/apiserver) are made of
 * these. Loop thread only.
 */
#ifndef AGENT_KUBE_SERVER_CALLER_H
#define AGENT_KUBE_SERVER_CALLER_H
#include "agent/kube/server/route.h"
#include "agent/kube/server/server.h"
#include "agent/kube/server/tls.h"
#include "base/codec/http_request.h"
#include "base/list.h"

#include <jansson.h>
#include <uv.h>

/* ---- limits ---- */
#define CALLERS_MAX 256       /* connections of clients; beyond, one that is not proven makes room */
#define UPSTREAMS_MAX 96      /* connections of the status socket, which has 128 */
#define CALLER_HEAD_MS 10000  /* for the handshake of TLS, and for a whole request */
#define CALLER_IDLE_MS 90000  /* between requests: kubelet's server */
#define CALLER_WRITE_MS 60000 /* without the client accepting any part of an answer */
#define CALLER_STREAM_MS (4 * 3600 * UINT64_C(1000)) /* without streamingConnectionIdleTimeout */
#define CALLER_CREATE_MS 30000                       /* for all streams of an exec to exist: kubelet's */
#define CALLER_LINGER_MS 5000                        /* for a client to close after the end of its stream */
#define CALLER_INPUT_MAX (HTTP_HEAD_MAX + HTTP_BODY_MAX + (256u << 10)) /* received, not used */
#define CALLER_BODY_MAX (3u << 20)   /* of a request to the local API: the apiserver's limit */
#define CALLER_OUT_HIGH (256u << 10) /* unsent bytes beyond which a source waits; */
#define CALLER_OUT_MAX (8u << 20)    /* beyond which the connection is closed */
#define UPSTREAM_SERVE_MS 10000      /* for the daemon to hand a connection over */
#define UPSTREAM_OUT_HIGH (256u << 10)
#define TOKEN_MAX (16 * 1024)

/* ---- caller.c: one connection of a client ---- */
enum caller_state {
    CALLER_READING, /* waits for a request */
    CALLER_ASKING,  /* its rights are looked up */
    CALLER_SERVED,  /* an answer is made or sent */
    CALLER_RAW,     /* it speaks another protocol */
    CALLER_LEAVING, /* all was sent; waits for the client to close */
    CALLER_CLOSING,
};

struct caller;

/* The source of an answer; all members except `gone` may be NULL. Its owner sets it (caller_serve), and
 * clears c->source when it is done. */
struct caller_source {
    void (*gone)(struct caller *c);    /* the connection closes: c->source is NULL already */
    void (*drained)(struct caller *c); /* few enough bytes are unsent again */
    void (*input)(struct caller *c);   /* CALLER_RAW: c->in has bytes */
};

struct caller {
    LIST_ENTRY(caller) all;
    struct kube_server *server;
    bool read_only; /* came to the port without TLS and rights */
    enum caller_state state;
    uv_tcp_t tcp;
    uv_timer_t timer;
    int open_handles;
    struct tls tls; /* ssl NULL: none */
    struct buf in;
    struct http_parser parser;
    char token[TOKEN_MAX], streams[512];                 /* Authorization, X-Stream-Protocol-Version */
    char accept[1024], type[128], etag[256], agent[128]; /* Accept, Content-Type, If-None-Match, User-Agent */
    struct http_keep keep[6];                            /* for them */
    struct buf body;                                     /* of a request, on the local API */
    const struct caller_source *source;
    void *job; /* the source's */
    struct route route;
    size_t writes, progress;
    uint64_t silent_ms; /* for which a stream may be; 0: CALLER_STREAM_MS */
    bool chunked, last, paused, high, answered;
    bool met;    /* the handshake of TLS is over */
    bool proven; /* it has shown that it may do something: it does not make room for others */
    bool as_is;  /* errors of the daemon are passed on as they are, as Status objects */
};

void caller_accept(struct kube_server *s, uv_stream_t *listener, bool read_only);
void *caller_local(const struct caller *c); /* kube_server_options.local_arg */
void caller_close(struct caller *c);        /* at once; idempotent */

/* From now on the source answers; `job` is its own. */
void caller_serve(struct caller *c, const struct caller_source *source, void *job);
/* The source is done: frees its job (`gone`), and the connection ends (caller_leave). Nothing where it closed
 * meanwhile. */
void caller_over(struct caller *c);

/* One answer to the request. `type` NULL: without Content-Type. */
void caller_answer(struct caller *c, int http, const char *type, const char *extra_head, const void *body,
                   size_t n);
void caller_text(struct caller *c, int http, const char *text); /* plain text, as it is */
void caller_json(struct caller *c, int http, json_t *body /* stolen; NULL: out of memory */);
/* Or in pieces. length < 0: not known. */
void caller_begin(struct caller *c, int http, const char *type, int64_t length);
void caller_piece(struct caller *c, const void *p, size_t n);
void caller_end(struct caller *c);

/* Or another protocol: the head that switches to it, then bytes. */
void caller_upgrade(struct caller *c, const struct buf *head);
void caller_send(struct caller *c, const void *p, size_t n);
/* Sends the rest, ends its direction, and closes when the client did. Clears c->source. */
void caller_leave(struct caller *c);

size_t caller_backlog(const struct caller *c);
void caller_pause(struct caller *c); /* reads no more; */
void caller_resume(struct caller *c);

/* ---- upstream.c: a connection of the status socket, and one request on it ---- */
struct upstream;
struct upstream_ops { /* the upstream may be closed in each of them */
    /* The head of the answer; upgraded: bytes follow instead of a body. length < 0: not known. */
    void (*head)(int http, const char *type, int64_t length, bool upgraded, void *owner);
    void (*body)(const char *p, size_t n, void *owner); /* or bytes */
    /* NULL: the answer is complete. Otherwise there is none, or it was cut off, or the bytes ended. Once. */
    void (*end)(const struct err *failure, void *owner);
    void (*drained)(void *owner); /* NULL: of no interest */
};
/* `request` is its whole text; takes ownership. NULL: *e has the reason. */
struct upstream *upstream_open(struct kube_server *s, struct buf *request, const struct upstream_ops *ops,
                               void *owner, struct err *e) MUST_CHECK;
void upstream_close(struct upstream *u); /* NULL is fine; nothing is called any more */
void upstream_send(struct upstream *u, const void *p, size_t n);
size_t upstream_backlog(const struct upstream *u);
void upstream_pause(struct upstream *u);
void upstream_resume(struct upstream *u);
void upstream_served(struct kube_server *s, uint64_t id, int fd, const char *error);
void upstream_close_all(struct kube_server *s);

/* ---- ask.c: a small answer of the status socket as JSON ---- */
struct ask;
/* done once, not from inside: http 0: there was no answer. `body` is borrowed, NULL if it is no JSON. */
typedef void (*ask_done_fn)(int http, json_t *body, const struct err *e, void *owner);
struct ask *ask_open(struct kube_server *s, const char *target, size_t body_max, ask_done_fn done,
                     void *owner, struct err *e) MUST_CHECK;
/* Another method, with a JSON body (borrowed; NULL: none). */
struct ask *ask_send(struct kube_server *s, const char *method, const char *target, const char *body,
                     size_t body_max, ask_done_fn done, void *owner, struct err *e) MUST_CHECK;
void ask_close(struct ask *a); /* NULL is fine */

/* ---- relay.c: an answer of the status socket, passed on ---- */
/* `target`: "/api/v1/pods?..." */
void relay_begin(struct caller *c, const char *target);
/* The daemon refused the request (`body` has its Status), or did not answer (`failure`; NULL otherwise):
 * plain text, as kubelet's errors are. */
void relay_refused(struct caller *c, const struct err *failure, int http, const struct buf *body);
/* The text of kubelet for an error: the message of a Status object. */
const char *relay_message(const json_t *status);

/* ---- tunnel.c: a WebSocket, passed on byte by byte ---- */
void tunnel_begin(struct caller *c, const char *target);

/* ---- remote.c, forward.c: SPDY ---- */
void remote_begin(struct caller *c, const char *target);  /* exec, attach */
void forward_begin(struct caller *c, const char *target); /* also in a WebSocket; without "port=" */

/* ---- forward_ws.c: the same over WebSocket with channels; the ports are in the query ---- */
bool forward_ws_is_asked(const struct caller *c);
void forward_ws_begin(struct caller *c, const char *target);

#endif
