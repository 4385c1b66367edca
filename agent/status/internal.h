/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/status. Loop thread only. */
#ifndef AGENT_STATUS_INTERNAL_H
#define AGENT_STATUS_INTERNAL_H
#include "agent/api/selector.h"
#include "agent/status/request.h"
#include "agent/status/server.h"
#include "base/background.h"
#include "base/list.h"

#include <jansson.h>
#include <uv.h>

#define STATUS_BODY_MAX (8u << 20) /* of a request with root's rights: an object and its managers */
#define STATUS_FEW_FILES "too few file descriptors are left: they are reserved for pods"

/* ---- limits ---- */
#define STATUS_CONNS_MAX 128     /* concurrent connections; */
#define STATUS_CONNS_OTHERS 96   /* of these for users other than root, so that root can always connect */
#define STATUS_WATCHES_MAX 64    /* connections that watch; */
#define STATUS_WATCHES_OTHERS 48 /* of these for users other than root */
#define STATUS_RELIEF_MS 1000    /* between two checks whether watches have to be ended */
#define STATUS_HEAD_MS 10000     /* to receive a complete request */
#define STATUS_IDLE_MS 60000     /* for which an idle connection is kept open */
#define STATUS_WRITE_MS 60000    /* without the client accepting any part of an answer */
#define STATUS_PROGRESS_MS 200   /* between two progress lines */
#define STATUS_BACKLOG_MAX (4u << 20) /* bytes by which a watch or log client may be behind */
#define STATUS_PIECE                                                                                         \
    (64u << 10) /* of a list, or of a watch's first set: the rest follows when it was sent                   \
                 */
/* Bytes of pending answers for all clients together. Beyond it the client that has accepted nothing for
 * longest is disconnected, and an answer without room is a Status (503). Enough for four followers at their
 * own limit, or a page of metrics of 400 pods; a larger answer is possible if no other is pending. */
#define STATUS_HELD_MAX (16u << 20)
#define STATUS_HELD_SMALL                                                                                    \
    (16u << 10) /* clients with less are not disconnected, because that would free too little */

/* ---- conn.c: one connection ---- */
enum conn_state {
    CONN_READING,   /* waiting for a request */
    CONN_ANSWERING, /* waiting for its turn, for the answer (status_reply), or sending it */
    CONN_STREAMING, /* watch, log or exec: until either side ends it */
    CONN_CLOSING,
};

/* A lent connection (status_server_lend()) has root's rights, but no share of the connections reserved for
 * root. */
enum peer_role { PEER_NOBODY, PEER_READER, PEER_LENT, PEER_ROOT };

struct watcher;
struct log_stream;
struct exec_stream;
struct listing;
struct feed;
struct conn;

/* The producer of an answer that takes several turns of the loop: a list, a watch, a log, a process,
 * progress. It sets c->source when it begins, and clears it in `gone` or when it ends its stream. All members
 * except `gone` may be NULL. */
struct conn_source {
    void (*gone)(struct conn *c);    /* the connection closes */
    void (*turn)(struct conn *c);    /* after conn_next_turn() or conn_await() */
    void (*written)(struct conn *c); /* some data was accepted; c->writes: how many writes are left */
    void (*tick)(struct conn *c);    /* after conn_tick_after() */
    void (*input)(struct conn *c);   /* c->in has more data, which is not a request */
};

struct conn {
    LIST_ENTRY(conn) all;
    struct status_server *server;
    enum conn_state state;
    enum peer_role role;
    uv_pipe_t pipe;
    uv_timer_t timer;
    int open_handles;
    struct http_parser parser;
    struct buf in;   /* received, not parsed */
    struct buf body; /* of a request with root's rights */
    size_t writes;   /* in progress */
    size_t held;     /* bytes of these writes, and of `in` */
    size_t held_in;
    uint64_t took_ns; /* when the client last accepted data, or had none to accept; uv_hrtime() */
    struct background_client turn; /* for its next request or the next piece of its answer */
    bool asks;                     /* the turn belongs to a request */
    bool awaits;                   /* wants a turn when everything is sent */
    size_t progress;               /* bytes pending when the timer was last set */
    bool eof, stopped;             /* the peer sends no more; reading is paused */
    bool last;                     /* the connection ends after this answer */
    bool served;                   /* counted by the limits, as opposed to refused */
    bool giving;                   /* its watch was ended to free its descriptor */
    bool idle;                     /* between requests */
    bool pretty;
    bool chunked;
    bool finite; /* the stream ends on its own: a client that stops sending still gets the rest */
    const struct conn_source *source;
    struct watcher *watch;
    struct log_stream *log;
    struct exec_stream *exec; /* the connection speaks WebSocket */
    struct listing *listing;
    struct feed *feed;
    struct status_reply *reply;
};

void server_resume(struct status_server *s); /* resumes accepting, called when a resource was freed */
/* NULL: out of memory. */
struct conn *conn_new(struct status_server *s);
void conn_unused(struct status_server *s, struct conn *c); /* no client used it */
void conn_accept(struct status_server *s, struct conn *c, int fd);
/* Closes at once; idempotent; the memory is freed when its handles are closed. */
void conn_close(struct conn *c);

/* One answer per request. Each takes the connection to the next request, or closes it. */
void conn_answer(struct conn *c, int http_code, const char *type, const char *extra_head, const void *body,
                 size_t n);
void conn_json(struct conn *c, int http_code, json_t *body /* stolen; NULL: out of memory */);
void conn_status(struct conn *c, int http_code, const char *reason, const char *kind, const char *name,
                 const char *message);
void conn_err(struct conn *c, const struct err *e);

/* Streams: begin, any number of pieces (queued if the socket is full), end. */
void conn_stream_begin(struct conn *c, const char *type);
void conn_stream(struct conn *c, const void *data, size_t n);
void conn_stream_end(struct conn *c);
size_t conn_backlog(const struct conn *c);
/* Calls the source's turn() when it is the connection's turn; */
void conn_next_turn(struct conn *c);
/* and after all data was sent. */
void conn_await(struct conn *c);
/* For a stream: the source's tick() is called then. */
void conn_tick_after(struct conn *c, uint64_t ms);
/* After a protocol change: sends the head, then frames follow. Takes ownership of the buffer's content. */
void conn_upgrade(struct conn *c, struct buf *head);
void conn_frames(struct conn *c, struct buf *b);
/* Pauses and resumes reading from the client; a disconnect in between is not detected. */
void conn_pause(struct conn *c);
void conn_resume(struct conn *c);
/* conn.c and conn_send.c */
void conn_arm(struct conn *c, uint64_t ms); /* the timer */
void conn_on_timer(uv_timer_t *timer);
void conn_next_request(struct conn *c); /* its answer is sent */

/* ---- codes.c ---- */
const char *status_reason(int http_code); /* Kubernetes' reason: "NotFound" */
const char *status_phrase(int http_code); /* HTTP's phrase: "Not Found" */
json_t *status_object(int http_code, const char *reason, const char *kind, const char *name,
                      const char *message);

/* ---- reply.c: answers from the provider ---- */
/* Answers with the provider's value, or its error. */
void conn_value(struct conn *c, json_t *value /* stolen */, const struct err *e);
/* A list of items that are not Kubernetes objects: {"items": [...]}. */
void conn_items(struct conn *c, json_t *(*get)(void *arg, struct err *e));
/* For a later answer: c->reply. NULL when out of memory, which has been answered. */
struct status_reply *reply_owe(struct conn *c);

/* ---- routes.c: permissions, pods and events; routes_node.c, routes_images.c: other paths ---- */
void route_request(struct conn *c);
void route_healthz(struct conn *c, const struct status_match *m);
void route_readyz(struct conn *c, const struct status_match *m);
void route_version(struct conn *c, const struct status_match *m);
void route_metrics(struct conn *c, const struct status_match *m);
void route_stats(struct conn *c, const struct status_match *m);
void route_manifests(struct conn *c, const struct status_match *m);
void route_evictions(struct conn *c, const struct status_match *m);
void route_placements(struct conn *c, const struct status_match *m);
void route_config(struct conn *c, const struct status_match *m);
void route_kubeconfig(struct conn *c, const struct status_match *m);
void route_operations(struct conn *c, const struct status_match *m);
void route_images(struct conn *c, const struct status_match *m);
void route_objects(struct conn *c, const struct status_match *m);
void route_generic(struct conn *c, const struct status_match *m);
void route_devices(struct conn *c, const struct status_match *m);
void route_store_object(struct conn *c, const struct status_match *m); /* store_object.c */
void route_image_task(struct conn *c, const struct status_match *m);

/* ---- progress.c: a client that follows its request's progress ---- */
struct status_reply {
    struct conn *conn; /* NULL: no client is waiting */
    bool streams;      /* lines of JSON, the last one is the answer */
    char *last;        /* the last line sent */
};
void progress_begin(struct conn *c); /* its reply becomes a stream */
void progress_end(struct conn *c, json_t *body /* stolen; NULL: out of memory */);

/* ---- select.c: label and field selectors on JSON objects ---- */
#define SELECT_FIELDS_MAX 16
struct selection {
    struct api_selector *labels; /* NULL: all */
    char *namespace_;            /* NULL: all */
    struct {
        char *path, *value;
        bool differs;
    } fields[SELECT_FIELDS_MAX];
    size_t n_fields;
    bool failed; /* out of memory: an object that did not match may be a match */
};
enum select_kind { SELECT_PODS, SELECT_EVENTS, SELECT_OBJECTS };
/* From labelSelector and fieldSelector; ERR_INVALID: a syntax error, or an unsupported field. */
enum err_code selection_parse(const struct http_request *r, enum select_kind kind, const char *namespace_,
                              struct selection *ret, struct err *e) MUST_CHECK;
void selection_done(struct selection *s);
bool selection_matches(struct selection *s, const json_t *object); /* check s->failed after the last one */

/* ---- keys.c ---- */
struct object_key {
    const char *namespace_, *name;
};
struct object_keys { /* initialize to { 0 } */
    enum status_kind kind;
    struct object_key *keys;
    size_t n, next;
    char *text;
};
/* Without those that `only` excludes by their names; NULL: all. */
enum err_code keys_read(struct object_keys *ret, struct status_server *s, enum status_kind kind,
                        const struct selection *only, struct err *e) MUST_CHECK;
void keys_done(struct object_keys *k);
bool keys_to_come(const struct object_keys *k, const char *namespace_, const char *name);
/* The next object; NULL with ERR_NOT_FOUND if it was removed. */
json_t *keys_next(struct object_keys *k, struct status_server *s, struct err *e);

/* ---- listing.c ---- */
struct listing_of {
    enum status_kind kind;
    const char *list, *api_version; /* "PodList", "v1" */
    bool versioned;                 /* the list has a resourceVersion */
};
void listing_begin(struct conn *c, const struct listing_of *of /* constant */,
                   struct selection *selection /* moved */);

/* ---- held.c ---- */
void held_init(struct status_server *s);
/* Whether an answer of n bytes may be queued; may disconnect other clients. */
bool held_room(struct conn *c, size_t n);
void held_add(struct conn *c, size_t n); /* a write of this size begins, */
void held_remove(struct conn *c, size_t n);
void held_input(struct conn *c);  /* the size of c->in has changed */
void held_forget(struct conn *c); /* the connection closes and its writes are cancelled */

/* ---- watch.c ---- */
/* `keys`: the first set, of pods or events. */
void watch_begin(struct conn *c, struct selection *selection /* moved */,
                 struct object_keys *keys /* moved */);
/* Ends watches with a Status until there are enough free descriptors: first watches whose client does not
 * read, then those that were silent for the longest time; root's only for root. False: there are not enough.
 */
bool watch_give_way(struct status_server *s, bool root);
/* A new object with metadata.resourceVersion set to the server's; NULL when out of memory. */
json_t *with_version(struct status_server *s, json_t *pod);

/* The key of a changed object, which gets the server's next version; for all kinds. */
enum { STATUS_KEY_SIZE = 352 };
void status_key_of(enum status_kind kind, const json_t *object, char ret[STATUS_KEY_SIZE]);
void note_version(struct status_server *s, const char *key, bool deleted);
uint64_t version_of(const struct status_server *s, const char *key);
json_t *set_version(json_t *pod, uint64_t version);

/* ---- feed.c: every object for one client ---- */
void feed_begin(struct conn *c, const struct status_match *m);
/* `object` has its version. NULL: out of memory. */
void feed_notify(struct status_server *s, const char *type, const json_t *object);

/* ---- logs.c ---- */
void logs_begin(struct conn *c, const char *namespace_, const char *name, const struct status_log_options *o);

/* ---- exec*.c ---- */
void exec_begin(struct conn *c, const struct status_match *m);

enum { EXEC_NO_PROTOCOL, EXEC_V4, EXEC_V5 }; /* v4.channel.k8s.io; v5: with half-close */
/* Whether the request asks for a supported WebSocket; otherwise answers it with the reason. */
bool exec_handshake(struct conn *c, int *ret_protocol);
void exec_accept(struct conn *c, int protocol); /* 101 */
/* The content of the error channel: JSON, malloc'ed; NULL when out of memory. */
char *exec_status(const struct err *result, int exit_code);
char *forward_status(const struct err *result); /* the same for a forwarded connection */

/* ---- server.c ---- */
struct pod_version {
    UT_hash_handle hh;
    uint64_t version;
    char key[]; /* namespace/name */
};

struct status_server {
    uv_loop_t *loop;
    struct status_provider provider;
    void (*on_request)(struct conn *c); /* route_request() */
    char *path;
    int fd; /* listens */
    uv_poll_t listener;
    uv_timer_t accept_again; /* runs while clients cannot be accepted */
    unsigned open_handles;
    dev_t dev; /* of our socket in the file system: only this one is removed */
    ino_t ino;
    bool has_group, closing;
    gid_t gid;
    struct background turns;
    bool background_open;
    struct background_client cutting; /* held.c */
    size_t held, n_writes;            /* of all connections; of those not closing */
    LIST_HEAD(, conn) conns;
    size_t n_conns;                     /* all, including those being turned away */
    size_t n_served, n_others;          /* those under the limits; of these not root */
    size_t n_watches, n_watches_others; /* watches; of these not root */
    size_t n_giving;     /* watches that were ended to free descriptors, until the descriptor is free */
    uint64_t relief_ms;  /* uv_now() of the last check of that */
    struct conn *spare;  /* used when out of memory, so that the socket keeps working */
    struct conn *unused; /* for the next client: each round of accept() ends with an unused connection */
    LIST_HEAD(, watcher) watchers, event_watchers;
    LIST_HEAD(, feed) feeds;
    LIST_HEAD(, log_stream) logs;
    size_t n_logs;  /* their work may outlive connections */
    size_t n_execs; /* they may outlive connections, too */
    struct pod_version *versions;
    uint64_t version;
    uint64_t first_version; /* starts with the milliseconds since 1970, so that it never decreases */
    int64_t started_ns;
    uint64_t head_ms, idle_ms, write_ms; /* STATUS_HEAD_MS, ...; shorter in tests */
    struct {
        uint64_t requests, connections, refused, dropped, cut_off, no_room, few_files;
    } count;
    char read_buffer[64 * 1024];
};
void server_maybe_free(struct status_server *s);
enum peer_role server_peer_role(const struct status_server *s, uid_t uid, gid_t gid, const gid_t *groups,
                                size_t n);
#endif
