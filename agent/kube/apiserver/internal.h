/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/kube/apiserver. Loop thread only. */
#ifndef AGENT_KUBE_APISERVER_INTERNAL_H
#define AGENT_KUBE_APISERVER_INTERNAL_H
#include "agent/api/selector.h"
#include "agent/api/serve/serve.h"
#include "agent/api/status.h"
#include "agent/kube/apiserver/api.h"
#include "agent/kube/server/caller.h"
#include "base/background.h"
#include "base/list.h"

/* ---- limits ---- */
#define API_ADMINS "system:masters"   /* the group that may do everything */
#define API_CHANGES_MAX 4096          /* changes that a watch may be behind, or begin before; */
#define API_CHANGES_BYTES (16u << 20) /* and the memory of them */
#define API_LINE_MAX (8u << 20)       /* of one object from the daemon */
#define API_FEED_AGAIN_MS 200         /* after the daemon's connection ended */
#define API_BOOKMARK_MS 60000         /* between two bookmarks of a watch: the apiserver's */
#define API_BOOKMARK_LAST_MS 2000     /* before the end of a watch */
#define API_WATCH_S 3600              /* of a watch without timeoutSeconds */
#define API_WATCH_MAX_S INT32_MAX
#define API_FIELDS_MAX 16      /* of a field selector */
#define API_SMALL (256u << 10) /* an answer that is sent in one piece */
#define API_PIECE (256u << 10) /* of a longer one */

/* ---- stock.c: the copy of the node's objects ---- */
struct stock_object {
    UT_hash_handle hh;
    const struct api_kind_row *kind;
    json_t *object;
    size_t bytes; /* of its memory, about */
    uint64_t version;
    unsigned set; /* of the feed's last first set that had it */
    char *namespace_, *name;
    char key[]; /* "group/kind/namespace/name" */
};

struct stock_change {
    uint64_t version;
    const struct api_kind_row *kind;
    json_t *object, *old; /* object NULL: deleted; old NULL: added */
    size_t bytes;
};

struct stock_namespace { /* one that objects are in */
    UT_hash_handle hh;
    size_t n_objects;
    char name[];
};

struct stock {
    struct stock_object *objects;
    struct stock_namespace *namespaces;
    uint64_t version;                             /* of the last change */
    uint64_t forgotten;                           /* a watch from before this version misses something */
    struct stock_change changes[API_CHANGES_MAX]; /* a ring */
    size_t first, n_changes, bytes;
    uint64_t n_forgotten; /* changes that were in the ring before; the number of its first one */
};

void stock_init(struct stock *s);
void stock_done(struct stock *s);
/* The daemon's objects. *ret: the change, until the next call; NULL: nothing changed. False: out of memory,
 * or no object of a known kind. */
bool stock_put(struct stock *s, json_t *object, unsigned set, const struct stock_change **ret);
/* `last`: as it was last; NULL: as it is. Both are borrowed. */
void stock_remove(struct stock *s, struct stock_object *o, uint64_t version, json_t *last);
/* Whether an object that is no Event is in this namespace. */
bool stock_uses(const struct stock *s, const char *namespace_);
struct stock_object *stock_find(const struct stock *s, const struct api_kind_row *kind,
                                const char *namespace_, const char *name);
/* Changes are numbered from 0 on; the next one gets stock_next(). NULL: it is forgotten, or not there yet. */
uint64_t stock_next(const struct stock *s);
const struct stock_change *stock_change_at(const struct stock *s, uint64_t number);
/* Of a kind, by namespace and name; malloc'ed, NULL: out of memory. */
struct stock_object **stock_sorted(const struct stock *s, const struct api_kind_row *kind, size_t *ret_n);
/* Whether nothing of the kind changed after that version, as far as is remembered. */
bool stock_is_as_at(const struct stock *s, const struct api_kind_row *kind, uint64_t version);
/* The row under which objects of this one are kept. */
const struct api_kind_row *stock_row(const struct api_kind_row *kind);

/* ---- select.c ---- */
struct api_selection {
    const struct api_kind_row *kind;
    char namespace[64], name[254]; /* "": any */
    struct api_selector *labels;   /* NULL: all */
    struct {
        char *path, *value;
        bool differs;
    } fields[API_FIELDS_MAX];
    size_t n_fields;
};
enum err_code api_selection_read(struct api_selection *ret, const struct http_request *r,
                                 const struct api_target *target, struct err *e) MUST_CHECK;
void api_selection_done(struct api_selection *s);
bool api_selection_has(const struct api_selection *s, const json_t *object);

/* ---- api.c ---- */
struct api_watch;
struct api_feed;

struct api_told {     /* the last event's text, which most watches of a kind have in common */
    const char *type; /* NULL: none */
    uint64_t change;
    const struct api_kind_row *kind;
    struct api_form_options form;
    struct buf text;
};

struct kube_api {
    struct kube_api_options o;
    struct stock stock;
    bool lone, closing, ready; /* ready: the first set is complete */
    char *node_name, *address; /* "127.0.0.1:6443" */
    char *version;
    int64_t since_ns; /* when the node started first, wall clock; 0: unknown */
    json_t *pki;
    uv_timer_t timer, again, renew;
    int open_handles;
    struct upstream *upstream; /* feed.c; NULL: none is open */
    struct buf line;
    uint64_t node_written; /* the Node's version when more than a heart-beat changed */
    unsigned set;
    bool set_complete;
    LIST_HEAD(, api_wait) waiting;
    LIST_HEAD(, api_watch) watches;
    struct background turns; /* of watches with much to send */
    struct api_told told;
};

struct api_wait { /* a request that waits for the first set */
    LIST_ENTRY(api_wait) all;
    struct caller *caller;
};

/* One request, understood. */
struct api_request {
    struct kube_api *api;
    struct caller *caller;
    struct api_target target;
    struct api_accept accept;
    enum api_include include;
    bool watch; /* by its path, /api/v1/watch/... */
};
void api_ready(struct kube_api *a); /* the first set is complete: requests that waited */
void api_changed(struct kube_api *a);
bool api_request_read(struct kube_api *a, struct caller *c, struct api_request *ret);

/* ---- answer.c ---- */
void api_answer_status(struct caller *c, json_t *status /* stolen; NULL: out of memory */);
void api_answer_err(struct caller *c, const struct err *e);
void api_answer_text(struct caller *c, int http, const char *type, struct buf *body /* taken */);
/* In the requested form. `value` is stolen; NULL: out of memory. */
void api_answer_value(const struct api_request *r, int http, json_t *value);
/* The same with more headers, "Name: value\r\n"; a Status is answered as it is. */
void api_answer_with(const struct api_request *r, int http, const char *head, json_t *value);
/* A copy whose kind and apiVersion are those of the row; another reference if nothing differs. */
json_t *api_as_kind(const struct api_kind_row *row, json_t *object);
void api_not_found(const struct api_request *r);

/* ---- options.c; each returns NULL, or the Status to answer with ---- */
struct api_list_options {
    uint64_t limit;    /* 0: none */
    uint64_t version;  /* 0: any */
    bool exact;        /* that version, and no other */
    const char *token; /* continue, of the request; NULL: the first page */
};
struct api_watch_options {
    uint64_t version; /* 0: first the present objects */
    bool initial, initial_given, bookmarks;
    uint64_t timeout_s;
};
json_t *api_list_options_read(const struct http_request *r, struct api_list_options *ret) MUST_CHECK;
json_t *api_watch_options_read(const struct http_request *r, struct api_watch_options *ret) MUST_CHECK;
json_t *api_version_read(const struct http_request *r, bool list, uint64_t *ret) MUST_CHECK;
json_t *api_version_too_large(uint64_t version, const struct stock *s);

/* ---- list.c ---- */
void api_get(const struct api_request *r);
void api_list(const struct api_request *r);
/* The requested List, new; NULL: *ret_status is the answer (NULL as well: out of memory). */
json_t *api_list_of(const struct api_request *r, json_t **ret_status);

/* ---- list_text.c ---- */
void api_answer_list(const struct api_request *r, json_t *list /* stolen; NULL: out of memory */);

/* ---- watch.c ---- */
void api_watch_begin(const struct api_request *r);
void api_watch_notify(struct kube_api *a); /* there are changes */
void api_told_forget(struct kube_api *a);
void api_watch_tick(struct kube_api *a); /* once a second while there are watches */

/* ---- node.c: objects that the daemon makes when it is asked ---- */
/* Requests the node, puts it into the stock, and continues with `next`; answers with the error if that
 * fails. */
void api_node_first(const struct api_request *r, void (*next)(const struct api_request *r));
/* Puts the daemon's Node, with its heartbeat, into the stock. Returns the stored object, borrowed; NULL: no
 * memory. Changes `node`. */
const json_t *api_node_take(struct kube_api *a, json_t *node);
/* The resourceVersion of a write's body becomes that of the live Node if only heart-beats are between. */
void api_node_version(const struct kube_api *a, const json_t *live, json_t *body);
#define API_LEASE_NAMESPACE "kube-node-lease"
void api_lease_renew(struct kube_api *a);
void api_metrics(const struct api_request *r);

/* ---- namespaces.c ---- */
/* Namespaces that no manifest has: there is one where there are objects in it, and those of every cluster. */
void api_namespace_need(struct kube_api *a, const char *name);
void api_namespaces_begin(struct kube_api *a);
/* After objects were removed without a message. */
void api_namespaces_sweep(struct kube_api *a);
/* A namespace may have lost its last object, or its manifest. */
void api_namespace_check(struct kube_api *a, const char *name);
/* The manifest of this one is gone. True: it is there as long as the objects in it are. */
bool api_namespace_stays(struct kube_api *a, struct stock_object *o);
/* A Namespace of a manifest is active. */
void api_namespace_complete(json_t *object);
/* The daemon's object of a manifest, with the defaults that an apiserver shows. */
void api_object_complete(json_t *object);

/* ---- health.c ---- */
bool api_is_health(const struct http_request *r);
void api_health(struct kube_api *a, struct caller *c);

/* ---- streams.c: log, exec, attach, portforward ---- */
bool api_streams(const struct api_request *r); /* false: it is none of them */

/* ---- feed.c ---- */
void api_feed_start(struct kube_api *a);
void api_feed_stop(struct kube_api *a);

/* ---- pki.c: the node's CA and its certificates ---- */
/* `files` has PEM texts: ca.crt, ca.key, server.crt, server.key, admin.crt, admin.key. *ret: NULL if they are
 * all good for API_PKI_RENEW_DAYS, otherwise a new object with all of them. */
#define API_PKI_DAYS 365
#define API_PKI_CA_DAYS 3650
#define API_PKI_RENEW_DAYS 60
enum err_code api_pki_renew(const json_t *files, const char *node_name, const char *host, int64_t now_s,
                            json_t **ret, struct err *e) MUST_CHECK;
#endif
