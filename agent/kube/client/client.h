/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client - requests to one apiserver, of coracle-kube.
 *
 * libcurl's multi interface on the loop: HTTP/2 where the server offers it (requests share a connection
 * then), HTTP/1.1 otherwise. Requests that are started before the first credentials wait for them.
 * Credentials are replaced while requests are under way: later ones use the new ones, and connections with
 * another client certificate are not used again. An answer of 401 asks for other credentials
 * (`on_unauthorized`) at most once in KUBE_ANEW_MS; the request itself reports it. So does each failure while
 * the client certificate is past its time by our clock (`expired`): a server may refuse it with 401, or by
 * TLS.
 *
 * Streams of HTTP/2 go to a connection one after the other: libcurl opens a connection for each request that
 * finds the others full, also while one is being opened.
 *
 * Bounds: an answer has at most `answer_max` bytes after decompression; at most KUBE_REQUESTS_MAX requests
 * and KUBE_STREAMS_MAX streams are under way, more wait in order; a request has a deadline. Requests that the
 * server put off (429, or 503 with Retry-After) are not repeated here: `retry_after_ms` says when it would
 * like to see them again. Redirects are errors.
 *
 * Requests are paced as client-go's (kubeAPIQPS, kubeAPIBurst), in order; the deadline of one that had to
 * wait for its turn begins when it is sent. Streams are not paced (client-go: watches are not), nor is what
 * says so: kubelet has clients of their own for heart-beats, without a limit, and for events.
 *
 * A connection that is dead without a word is noticed in three ways. The kernel gives up a peer that
 * acknowledges nothing for KUBE_SILENCE_S (TCP keepalive and TCP_USER_TIMEOUT). A connection with HTTP/2 over
 * which nothing came for KUBE_PING_MS is asked by a PING, and closed after another KUBE_PONG_MS of silence,
 * as in client-go (apimachinery/pkg/util/net/http.go): a load balancer acknowledges what its server never
 * gets. And where a request is not answered within its deadline, and nothing at all came over its connection
 * since it was sent, the connection is closed, and with it each stream on it: the lease, renewed every ten
 * seconds with a deadline, finds out first (as kubelet closes its connections when heart-beats fail).
 *
 * Loop thread only.
 */
#ifndef AGENT_KUBE_CLIENT_CLIENT_H
#define AGENT_KUBE_CLIENT_CLIENT_H
#include "base/buf.h"
#include "base/op.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define KUBE_REASON_MS 5000
#define KUBE_REQUESTS_MAX 64
/* 110 pods with nine objects each that are followed. */
#define KUBE_STREAMS_MAX 1024
#define KUBE_SILENCE_S 45
#define KUBE_PING_MS 30000
#define KUBE_PONG_MS 15000
#define KUBE_ANEW_MS 1000
#define KUBE_ANSWER_MAX ((size_t)4 << 20)

struct kube_client;

struct kube_client_options {
    uv_loop_t *loop;
    const char *user_agent; /* copied */
    void (*on_unauthorized)(bool expired, void *arg);
    /* The apiserver answered after it had not, or the other way round; `why`: the error, or "". The first
     * request reports either. Again, at most every KUBE_REASON_MS, when it does not answer for another
     * reason. */
    void (*on_reachable)(bool reachable, const char *why, void *arg);
    void *arg;
    uint64_t ping_ms, pong_ms; /* 0: KUBE_PING_MS, KUBE_PONG_MS */
};

enum err_code kube_client_open(struct kube_client **ret, const struct kube_client_options *o,
                               struct err *e) MUST_CHECK;
/* NULL is fine. Requests under way end with ERR_CANCELLED; the loop must run until they did. */
void kube_client_close(struct kube_client *c);
/* The members of the message `credentials` (agent/kube/README.md); borrowed. ERR_INVALID: a certificate, a
 * key or the URL cannot be used; the credentials of before stay in force. */
enum err_code kube_client_credentials(struct kube_client *c, const json_t *credentials,
                                      struct err *e) MUST_CHECK;

#define KUBE_QPS 5    /* client-go's defaults, with kubeAPIQPS: 0 */
#define KUBE_BURST 10 /* likewise */
/* Requests a second and at once; 0: KUBE_QPS, KUBE_BURST. Until then there is no limit. */
void kube_client_pace(struct kube_client *c, int64_t qps, int64_t burst);

struct kube_client_counts {
    uint64_t requests; /* sent, streams included */
    uint64_t failed;   /* without an answer */
    uint64_t refused;  /* an HTTP status of 400 and above, but for 404, 409 and 410 */
    uint64_t put_off;  /* 429 */
    unsigned under_way, streams, waiting;
};
struct kube_client_counts kube_client_counts(const struct kube_client *c);
/* {"host": "10.0.0.1:6443", "counts": [["GET", 200, 12], ...]}: answers of the server in force by method and
 * status, as soon as their head is there, streams included; status 0: there was none, also because the
 * request was cancelled. What client-go counts as rest_client_requests_total. A new reference; NULL: no
 * memory. */
json_t *kube_client_answers(const struct kube_client *c);

struct kube_request_spec {    /* borrowed during kube_request_start() */
    const char *method;       /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    const char *path;         /* with its query, escaped (kube_escape): "/api/v1/pods?fieldSelector=..." */
    const char *content_type; /* of the body; NULL: "application/json" */
    const json_t *body;       /* NULL: none */
    const char *subject;      /* for people: "node peer" */
    size_t answer_max;        /* 0: KUBE_ANSWER_MAX */
    uint64_t deadline_ms;     /* 0: none; of a stream: until its head is there */
    bool unpaced;             /* kube_client_pace() does not count it */
    /* A stream: each line of the answer (a watch event) is parsed and passed on when it arrives, at most
     * `answer_max` bytes of it; then `answer` stays NULL. Borrowed. False: end the stream, without an error.
     * It may start and cancel requests, including this one. */
    bool (*on_line)(json_t *line, void *owner);
    void (*on_head)(void *owner); /* of a stream, may be NULL: it was accepted (200), lines may follow */
};

struct kube_request {
    struct op op;
    /* In done. An HTTP status of 400 and above is an error as well: 404 ERR_NOT_FOUND, 409 ERR_EXISTS (reason
     * AlreadyExists) or ERR_ABORTED (Conflict), 410 ERR_RANGE, 401 ERR_UNAUTHENTICATED, 403 ERR_PERMISSION,
     * 400 and 422 ERR_INVALID, 429 ERR_EXHAUSTED, 504 ERR_DEADLINE, others ERR_UNAVAILABLE; the text is that
     * of the Status object. No answer: ERR_UNAVAILABLE with the words of the transport, and the errno of a
     * connection that could not be made in `sys`. An answer that is too long or no JSON object: ERR_INTERNAL.
     */
    int http;                /* 0: there was no answer */
    json_t *answer;          /* NULL: none; borrowed: json_incref() keeps it */
    uint64_t retry_after_ms; /* 0: not given */
    /* private */
    op_done_fn user_done;
    struct kube_call *call;
};

void kube_request_start(struct kube_request *r, struct kube_client *c, const struct kube_request_spec *spec,
                        op_done_fn done, void *owner);
void kube_request_cancel(struct kube_request *r); /* no effect on one that is done, or { 0 } */

/* Appends text as a part of a path or a query: all but letters, digits and "-._~" becomes %XX. */

/* A Status object, or an event's, as an error; `http`: 0: the object's own `code`. Returns the code. */
enum err_code kube_status_err(const json_t *status, int http, struct err *e);
#endif
