/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_KUBE_CLIENT_INTERNAL_H
#define AGENT_KUBE_CLIENT_INTERNAL_H
#include "agent/kube/client/client.h"
#include "agent/kube/client/pace.h"
#include "base/list.h"

#include <curl/curl.h>

struct kube_call;

/* ---- access.c: the credentials, as libcurl wants them ---- */

/* Immutable and counted: each call holds the one that it was sent with, as libcurl borrows from it. */
struct kube_access {
    unsigned refs;
    char *base; /* "https://10.0.0.1:6443/prefix" */
    char *host; /* "10.0.0.1:6443"; the port only where the URL has one */
    bool plain; /* http:// */
    char *
        connect_to; /* "name:port:host:port" where the certificate is checked against another name; or NULL */
    char *proxy;    /* "": none */
    bool insecure, compressed;
    struct curl_blob ca, certificate, key; /* n == 0: none */
    int64_t not_after_s;                   /* of the certificate, wall clock; 0: none */
    struct curl_slist *headers;
};
enum err_code kube_access_new(struct kube_access **ret, const json_t *credentials, const char *user_agent,
                              struct err *e) MUST_CHECK;
/* By our clock. */
bool kube_access_expired(const struct kube_access *a);
struct kube_access *kube_access_ref(struct kube_access *a);
void kube_access_unref(struct kube_access *a); /* NULL is fine */

/* ---- lines.c: a stream's lines ---- */

struct kube_lines {
    struct buf text;
    size_t max; /* of a line */
};
void kube_lines_init(struct kube_lines *l, size_t max);
void kube_lines_done(struct kube_lines *l);
/* Hands over each whole line that is not empty. ERR_INTERNAL: one is too long, or no JSON object. False of
 * on_line: *ret_ended, and no more is read. */
enum err_code kube_lines_feed(struct kube_lines *l, const char *data, size_t n,
                              bool (*on_line)(json_t *line, void *arg), void *arg, bool *ret_ended,
                              struct err *e) MUST_CHECK;

/* One JSON object. A NUL, which Go's texts may hold and C's cannot, becomes U+FFFD: otherwise a pod's
 * annotation could keep all pods of the node from being read. Changes text. */
enum err_code kube_parse(char *text, size_t n, json_t **ret, struct err *e) MUST_CHECK;

/* ---- sockets.c: libcurl's sockets and its timer on the loop ---- */

enum silence_asked { SILENCE_ASKED, SILENCE_LATER /* not now */, SILENCE_DEAF /* it has no such question */ };

struct client_socket {
    TAILQ_ENTRY(client_socket) link;
    struct kube_sockets *s;
    uv_poll_t poll;
    curl_socket_t fd;
    bool writes;       /* libcurl has something to send and waits for room */
    uint64_t heard_ms; /* something could be read; 0: not yet */
    uint64_t born_ms;
    uint64_t pinged_ms; /* 0: never */
};

struct kube_sockets {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer, silence;
    uint64_t ping_ms, pong_ms; /* client.h */
    TAILQ_HEAD(client_socket_list, client_socket) list;
    bool inside; /* of libcurl: handles can neither be added nor removed */
    unsigned open_handles;
    void (*on_turn)(struct kube_sockets *s); /* libcurl did something: transfers may have ended */
    /* Asks the peer of the connection with this local port for a sign of life. */
    enum silence_asked (*on_silent)(struct kube_sockets *s, int local_port, int fd);
    void (*on_closed)(struct kube_sockets *s);
};
enum err_code kube_sockets_open(struct kube_sockets *s, uv_loop_t *loop,
                                void (*on_turn)(struct kube_sockets *s), struct err *e) MUST_CHECK;
/* After the last transfer; on_closed: once the handles are closed. */
void kube_sockets_close(struct kube_sockets *s, void (*on_closed)(struct kube_sockets *s));

/* ---- silence.c: connections over which nothing comes ---- */

/* Shuts the connection with this local port down, unless something came over it since. True: it was silent.
 */
bool kube_sockets_give_up(struct kube_sockets *s, int local_port, uint64_t since_ms);
/* There is a socket more: its silence is measured. */
void kube_silence_watch(struct kube_sockets *s);

/* ---- ping.c ---- */

/* A PING of HTTP/2 on the call's connection. */
enum silence_asked kube_call_ping(struct kube_call *call, int fd);

/* ---- client.c, call.c ---- */

enum call_state { CALL_WAITS, CALL_RUNS, CALL_OVER };

struct kube_call {
    TAILQ_ENTRY(kube_call) link; /* of waiting or running */
    struct kube_client *c;
    struct kube_request *r;
    enum call_state state;
    CURL *easy;
    struct kube_access *access;
    struct curl_slist headers[2]; /* its own, before those of the access */
    char *method, *path;
    char content_type[96];
    struct buf body;
    struct buf answer; /* or the head of an error, of a stream */
    struct kube_lines lines;
    bool (*on_line)(json_t *line, void *owner);
    void (*on_head)(void *owner);
    uint64_t sent_ms;
    int local_port;
    uint64_t deadline_ms;
    bool paced, held;   /* it needs a token; it had to wait for one */
    bool ended;         /* by on_line */
    bool tallied;       /* its answer is counted */
    bool doomed;        /* to be ended as soon as libcurl is not running */
    struct err failure; /* found in a callback */
    char words[CURL_ERROR_SIZE];
};
TAILQ_HEAD(kube_calls, kube_call);

/* ---- tally.c: requests by method and status ---- */

/* Five methods, and the statuses that an apiserver has for each. A server that invents more is not followed:
 * they are not counted. */
#define KUBE_TALLY_MAX 64

struct kube_tally {
    struct {
        char method[8];
        int http; /* 0: there was no answer */
        uint64_t requests;
    } rows[KUBE_TALLY_MAX];
    size_t n;
};
void kube_tally_add(struct kube_tally *t, const char *method, int http);
/* The counts belong to one server, and are reset for another. `before` NULL: none. */
void kube_tally_server(struct kube_tally *t, const char *before, const char *now);

struct kube_client {
    struct kube_client_options o;
    char *user_agent;
    struct kube_access *access; /* NULL: none yet */
    struct kube_sockets sockets;
    struct kube_calls waiting, running;
    struct kube_client_counts counts;
    struct kube_tally tally;
    enum { REACH_UNKNOWN, REACH_YES, REACH_NO } reach;
    char why[sizeof(((struct err *)0)->text)]; /* of REACH_NO: the reason last reported; otherwise "" */
    uint64_t why_ms;                           /* reported at that time */
    uint64_t anew_ms;                          /* last asked for other credentials */
    struct kube_pace pace;
    uv_timer_t pace_timer; /* the next token */
    bool two;              /* the apiserver answered with HTTP/2 */
    bool closed;
};

/* Gives the call's transfer to libcurl. */
enum err_code kube_call_send(struct kube_call *call, struct err *e) MUST_CHECK;
/* Its transfer is over; its outcome in *e and the request. */
void kube_call_result(struct kube_call *call, CURLcode code, struct err *e);
/* The status of the answer's head; 0: there is none yet. */
int kube_call_http(const struct kube_call *call);
/* Takes the transfer away from libcurl and frees the call. */
void kube_call_free(struct kube_call *call);

/* ---- known.c: the names of a reflector's objects ---- */

struct known_object {
    UT_hash_handle hh;
    char *uid;
    unsigned seen; /* in this set */
    size_t namespace_n;
    char key[]; /* namespace, "/", name */
};

struct known {
    struct known_object *objects;
    unsigned set; /* the number of the set that is being received */
};

struct known_object *known_find(struct known *k, const char *namespace_, const char *name);
/* NULL: out of memory. */
struct known_object *known_add(struct known *k, const char *namespace_, const char *name, const char *uid);
bool known_rename(struct known_object *o, const char *uid); /* another object of the name; false: no memory */
void known_remove(struct known *k, struct known_object *o);
size_t known_count(const struct known *k);
size_t known_count_set(const struct known *k);       /* of this set */
struct known_object *known_missing(struct known *k); /* one that is not in this set; NULL: none */
void known_done(struct known *k);
#endif
