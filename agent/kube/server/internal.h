/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/kube/server. Loop thread only. */
#ifndef AGENT_KUBE_SERVER_INTERNAL_H
#define AGENT_KUBE_SERVER_INTERNAL_H
#include "agent/kube/server/caller.h"
#include "agent/kube/server/review_cache.h"
#include "agent/kube/server/spdy.h"
#include "base/codec/websocket.h"

/* ---- access.c: authentication and authorization ---- */
/* Calls serve_request(c), or answers 401, 403 or 500. */
void access_begin(struct caller *c);

/* ---- serve.c: the answer of each path ---- */
void serve_request(struct caller *c);

/* ---- relay.c, tunnel.c ---- */
enum { RELAY_ERROR_MAX = 64 * 1024 }; /* of a Status of the daemon */

/* ---- slis.c: /metrics/slis ---- */
void slis_count(struct caller *c, bool ok); /* the daemon answered, or did not; counts if it was /healthz */
void slis_begin(struct caller *c);          /* answers */

/* ---- channels.c: Kubernetes' channels of the status socket, as a WebSocket client ---- */
struct channels;
struct channels_ops {            /* the channels may be closed in each of them */
    void (*opened)(void *owner); /* may be NULL: bytes sent before it wait in the connection */
    void (*data)(unsigned char channel, const char *p, size_t n, void *owner);
    /* NULL: it ended in order. http: of a refusal, 0 if there was none. Once. */
    void (*end)(const struct err *failure, int http, void *owner);
    void (*drained)(void *owner);
};
struct channels *channels_open(struct kube_server *s, const char *target, const struct channels_ops *ops,
                               void *owner, struct err *e) MUST_CHECK;
void channels_close(struct channels *x); /* NULL is fine */
void channels_send(struct channels *x, unsigned char channel, const void *p, size_t n);
void channels_end_input(struct channels *x); /* half-close of channel 0 */
size_t channels_backlog(const struct channels *x);
void channels_pause(struct channels *x);
void channels_resume(struct channels *x);

enum { CHANNEL_STDIN, CHANNEL_STDOUT, CHANNEL_STDERR, CHANNEL_ERROR, CHANNEL_RESIZE, CHANNEL_CLOSE = 255 };

/* ---- caller.c, for accept.c and caller_answer.c ---- */
void caller_arm(struct caller *c, uint64_t ms); /* its timer */
void caller_on_timer(uv_timer_t *timer);
void caller_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret);
void caller_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece);
void caller_next(struct caller *c); /* its answer is complete */

/* ---- spdy_wire.c: SPDY on a caller, or in a WebSocket on it ---- */
struct spdy_wire {
    struct caller *caller;
    struct spdy spdy;
    struct ws ws;
    bool tunneled, begun;
    const char *protocol; /* the negotiated one; "" if the client named none */
};
/* Whether the request upgrades to it, with one of the protocols (NULL-terminated); otherwise it has been
 * answered. */
bool spdy_wire_asked(struct spdy_wire *w, struct caller *c, const char *const *protocols);
/* Sends 101. False: out of memory, the caller is closed. */
bool spdy_wire_begin(struct spdy_wire *w, const struct spdy_events *events, void *owner);
void spdy_wire_done(struct spdy_wire *w);
/* Takes c->in. False: the session is over. */
bool spdy_wire_input(struct spdy_wire *w);
void spdy_wire_flush(struct spdy_wire *w); /* may close the caller */

/* ---- forward.c ---- */
/* The words of a connection's failure; false: there was none. `answer`: of the status socket;
 * pod_done: the pod closed it. */
bool forward_failure(const struct caller *c, uint16_t port, const struct buf *answer,
                     const struct err *failure, bool pod_done, struct buf *ret);

/* ---- run.c ---- */
void run_begin(struct caller *c, const char *target);

/* ---- server.c, server_free.c ---- */
struct health_count { /* of /healthz */
    uint64_t good, bad;
    bool last_good;
    int64_t since_ns; /* wall clock: the process began */
};

struct kube_server {
    struct kube_server_options o;
    void (*on_request)(struct caller *c); /* access_begin() */
    char *node_name;
    json_t *config; /* `server` of the message */
    SSL_CTX *context;
    char *self_certificate, *self_key; /* NULL: none was made */
    bool requests_certificate;         /* serverTLSBootstrap: the self-signed certificate is temporary and
                                        * not stored */
    struct {
        bool token_webhook, anonymous, always_allow, debugging;
        uint64_t token_ms, allowed_ms, denied_ms, idle_ms;
    } rules;
    uv_tcp_t port, read_only_port;
    uv_timer_t again; /* while the port is busy */
    int open_handles; /* of these; 0: nothing was opened yet */
    bool listening, busy, closing;
    LIST_HEAD(, caller) callers;
    struct caller *spare; /* for a client that connects while memory is exhausted */
    uv_stream_t *waits;   /* a port whose client could not be accepted for that; NULL: none */
    size_t n_callers;
    LIST_HEAD(, upstream) upstreams;
    size_t n_upstreams, n_access, n_asks;
    uint64_t next_id;
    struct health_count health;
    struct review_cache tokens, decisions;
    char read_buffer[64 * 1024];
};
void kube_server_maybe_free(struct kube_server *s);

/* ---- ports.c ---- */
/* Listens; a port that is taken is tried again each second, with one line of log. */
void ports_open(struct kube_server *s);
void ports_close(struct kube_server *s);
#endif
