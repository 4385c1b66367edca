/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal - declarations that the parts of the room share: timers and requests that need no closing, and
 * calls between the parts.
 */
#ifndef AGENT_KUBE_SYNC_INTERNAL_H
#define AGENT_KUBE_SYNC_INTERNAL_H
#include "agent/kube/client/reflector.h"
#include "agent/kube/sync/sync.h"
#include "base/boot_timer.h"
#include "base/list.h"

#define JSON_PATCH_STRATEGIC "application/strategic-merge-patch+json"
#define SYNC_DEADLINE_MS 30000 /* of a request; kubelet's client has none, the apiserver's own is 60 s */

/* ---- wait.c: timers, on one handle ---- */

struct sync_timer { /* { 0 }: does not run */
    TAILQ_ENTRY(sync_timer) link;
    struct boot_time at;
    void (*fn)(void *owner);
    void *owner;
    bool runs;
};

void sync_timer_start(struct kube_sync *s, struct sync_timer *t, uint64_t in_ms, void (*fn)(void *owner),
                      void *owner); /* anew if it runs */
void sync_timer_stop(struct kube_sync *s, struct sync_timer *t);
/* ms to ms * (1 + factor), as wait.Jitter() of apimachinery. */
uint64_t sync_jitter_ms(uint64_t ms, double factor);
double sync_random(void); /* [0, 1) */
enum err_code sync_timers_open(struct kube_sync *s, struct err *e) MUST_CHECK;
void sync_timers_close(struct kube_sync *s);

/* ---- call.c: requests ---- */

struct sync_answer {
    const struct err *error; /* ERR_OK, or an error of kube_request */
    int http;
    json_t *object; /* borrowed; NULL: none */
    uint64_t retry_after_ms;
};

struct sync_call { /* embedded in its part; { 0 }: idle */
    struct kube_request request;
    struct kube_sync *sync;
    void (*done)(void *owner, const struct sync_answer *a);
    void *owner;
    bool busy;
    TAILQ_ENTRY(sync_call) link;
};

/* A request whose answer is `done`'s, on a later turn; the call is idle again then. Not while it is busy. */
void sync_call(struct kube_sync *s, struct sync_call *c, const struct kube_request_spec *spec,
               void (*done)(void *owner, const struct sync_answer *a), void *owner);
void sync_call_cancel(struct sync_call *c); /* done follows, with ERR_CANCELLED */
/* "/api/v1/namespaces/<namespace>/pods/<name>/status"; parts are escaped; SYNC_PATH_END, or a NULL of that
 * type, ends the list. malloc'ed. */
#define SYNC_PATH_END ((const char *)NULL)
char *sync_path(const char *prefix, ...) __attribute__((sentinel)) MUST_CHECK;
/* How long to wait: as the server asked, a minute (KUBE_RETRY_AFTER_MS) at most, else the back-off. */
uint64_t sync_wait_ms(const struct sync_answer *a, uint64_t *last_ms, uint64_t first_ms, uint64_t most_ms);

/* ---- sync.c ---- */

struct kube_sync {
    struct kube_sync_options o;
    json_t *config; /* the message; NULL: not yet */
    const char *node_name;
    struct boot_timers *timers;
    struct boot_timer timer;
    TAILQ_HEAD(sync_timers, sync_timer) waiting; /* by time */
    TAILQ_HEAD(sync_calls, sync_call) calls;
    bool closing;
    void (*on_over)(struct kube_sync *s); /* a request or the timer's handle came to its end */
    void (*on_node)(struct kube_sync *s); /* the apiserver has the Node, or has it anew */
    struct node_part *node;
    struct lease_part *lease;
    struct csi_part *csi;
    struct claims_part *claims;
    struct pods_part *pods;
    struct events_part *events;
    struct objects_part *objects;
    struct tokens_part *tokens;
    struct certs_part *certs;
    struct state_part *state;
};

/* Takes `message`; NULL (no memory) is fine. */
void sync_send(struct kube_sync *s, json_t *message);

/* ---- the parts: each has _new (NULL: no memory), _start once `config` and credentials are there, _stop and
 * _free; what else they do is called by the message of the same name ---- */

struct node_part *node_part_new(struct kube_sync *s);
void node_part_start(struct node_part *n);
void node_part_stop(struct node_part *n);
void node_part_free(struct node_part *n);
void node_part_take(struct node_part *n, const json_t *object);
void node_part_anew(struct node_part *n);
const char *node_part_uid(const struct node_part *n); /* NULL: the apiserver has no Node yet */
bool node_part_is_leaving(const struct node_part *n); /* it has a deletionTimestamp */
const json_t *node_part_addresses(const struct node_part *n);
const json_t *node_part_known(const struct node_part *n); /* as the apiserver has it; NULL */
/* The answer to another part's request; it may be older than the known version. */
void node_part_see(struct node_part *n, json_t *object);

struct lease_part *lease_part_new(struct kube_sync *s);
void lease_part_start(struct lease_part *l);
void lease_part_stop(struct lease_part *l);
void lease_part_free(struct lease_part *l);
void lease_part_anew(struct lease_part *l); /* the Node or the credentials are new: not later than now */

struct csi_part *csi_part_new(struct kube_sync *s);
void csi_part_start(struct csi_part *c); /* once the Node was seen; again when it was seen again */
void csi_part_stop(struct csi_part *c);
void csi_part_free(struct csi_part *c);
void csi_part_take(struct csi_part *c, const json_t *message);
void csi_part_anew(struct csi_part *c);

struct claims_part *claims_part_new(struct kube_sync *s);
void claims_part_start(struct claims_part *p);
void claims_part_stop(struct claims_part *p);
void claims_part_free(struct claims_part *p);
void claims_part_take(struct claims_part *p, json_t *message);

struct pods_part *pods_part_new(struct kube_sync *s);
void pods_part_start(struct pods_part *p); /* once the Node was seen */
void pods_part_stop(struct pods_part *p);
void pods_part_free(struct pods_part *p);
void pods_part_take(struct pods_part *p, const json_t *message);
void pods_part_forget(struct pods_part *p, const json_t *message);
void pods_part_anew(struct pods_part *p);
/* The name of a static pod's mirror; NULL: it is none of the node's static pods. */
const char *pods_part_mirror(struct pods_part *p, const char *namespace_, const char *name, const char *uid);

struct events_part *events_part_new(struct kube_sync *s);
void events_part_start(struct events_part *v);
void events_part_stop(struct events_part *v);
void events_part_free(struct events_part *v);
void events_part_take(struct events_part *v, const json_t *object);
void events_part_anew(struct events_part *v);

struct objects_part *objects_part_new(struct kube_sync *s);
void objects_part_start(struct objects_part *p);
void objects_part_stop(struct objects_part *p);
void objects_part_free(struct objects_part *p);
void objects_part_need(struct objects_part *p, const json_t *message);
void objects_part_drop(struct objects_part *p, const json_t *message);
void objects_part_look(struct objects_part *p,
                       const json_t *message);  /* one that is read: it is read again */
void objects_part_pods(struct objects_part *p); /* the node has a pod, or had one */

struct tokens_part *tokens_part_new(struct kube_sync *s);
void tokens_part_free(struct tokens_part *p);
void tokens_part_take(struct tokens_part *p, const json_t *message);

struct certs_part *certs_part_new(struct kube_sync *s);
void certs_part_start(struct certs_part *c);
void certs_part_stop(struct certs_part *c);
void certs_part_free(struct certs_part *c);
void certs_part_credentials(struct certs_part *c, const json_t *message);
void certs_part_serving(struct certs_part *c, const json_t *message);
void certs_part_addresses(struct certs_part *c); /* the node's addresses may have changed */
/* {"client": {"notAfter": 1800000000, "errors": 0}, "server": ...}: of those that are rotated; without
 * `notAfter` there is none yet. A new reference; NULL: no memory. */
json_t *certs_part_state(const struct certs_part *c);

struct state_part *state_part_new(struct kube_sync *s);
void state_part_stop(struct state_part *t);
void state_part_free(struct state_part *t);
void state_part_count(struct state_part *t, const struct kube_request_spec *spec);
void state_part_send(struct state_part *t);    /* at once; a due message stays due */
void state_part_changed(struct state_part *t); /* certs_part_state() has changed */
/* The trouble of a part, for people; NULL: it has none. `part` is a constant. */
void state_part_report(struct state_part *t, const char *part, const char *text);
#endif
