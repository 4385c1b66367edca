/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by the files of agent/cluster. Loop thread only. */
#ifndef AGENT_CLUSTER_INTERNAL_H
#define AGENT_CLUSTER_INTERNAL_H
#include "agent/cluster/cluster.h"
#include "agent/kept/kept.h"
#include "agent/kube/link/link.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/volume/volumes.h"
#include "base/list.h"
#include "base/process/process.h"
#include "base/strs.h"

#define KEEP_SERVICES "Services" /* name of the kept copy; others are "Kind/namespace/name" */
#define KEEP_NODE "Node"
#define KEEP_TRUST "ClusterTrustBundles"
#define KEEP_CLASSES "RuntimeClasses"
#define KEEP_DRIVERS "CSIDrivers"

#define CLUSTER_KEY_SIZE 400 /* "ConfigMap/" namespace (63) "/" name (253) */

struct cluster_need { /* an object that pods refer to */
    UT_hash_handle hh;
    enum api_config_kind kind;
    bool told;     /* `need` was sent on this link */
    unsigned seen; /* the last count that found a pod with it */
    char *namespace_, *name;
    char key[];
};

struct cluster_report { /* the status last sent for a pod */
    UT_hash_handle hh;
    char key[POD_KEY_SIZE];
    uint64_t hash; /* of the last message on this link; 0: none */
    bool dirty;
    char uid[];
};

struct cluster_service { /* a Service with a cluster IP; one block with its ports and texts */
    UT_hash_handle hh;
    struct node_service s;
    unsigned link; /* the last one on which it was put */
    size_t size;   /* of the block */
    char key[];
};

struct cluster_class { /* a RuntimeClass in the store */
    UT_hash_handle hh;
    unsigned link; /* the last one on which it was put */
    char name[];
};

enum thing_kind { THING_CLAIM, THING_VOLUME, THING_ATTACHMENT };

struct cluster_thing { /* an object of storage to which pods refer; read, not watched */
    UT_hash_handle hh;
    enum thing_kind kind;
    bool told;     /* `need` was sent on this link */
    unsigned seen; /* the last count that found a pod with it */
    unsigned users,
        before;     /* number of volumes of pods that refer to it, in this count and the previous one */
    json_t *object; /* NULL: not known, or absent */
    bool absent;    /* proven */
    char *denied;   /* the apiserver's refusal; NULL: none */
    bool hot;       /* a pod waits for a change */
    uint64_t wait_ms;
    struct boot_time look_at, since;
    char *namespace_, *name;
    char key[];
};

struct cluster_driver { /* a CSIDriver */
    UT_hash_handle hh;
    unsigned link;       /* the last one on which it was put */
    bool attach;         /* attachRequired */
    json_int_t period_s; /* nodeAllocatableUpdatePeriodSeconds; 0: none */
    struct boot_time ask_at;
    json_t *object;
    char name[];
};

struct cluster_token {
    UT_hash_handle hh;
    json_int_t id;
    bool asked; /* a request is under way */
    char *text; /* NULL: none yet */
    size_t size;
    int64_t expires_ns;
    char *error;       /* the last answer was a refusal; NULL */
    int64_t retry_ns;  /* boot clock: time of the next request after a refusal */
    uint64_t retry_ms; /* the pause before that; 0: the last answer was a token */
    char *pod_uid;
    json_t *message; /* the request, to be sent again on a new link */
    char key[];
};

struct cluster {
    struct cluster_options o;
    struct node_cluster of_node;
    json_t *credentials, *serving;
    struct kube_link *link; /* NULL: coracle-kube does not run */

    /* process.c */
    struct proc proc;
    uv_timer_t again;
    uint64_t started_ms, pause_ms, starts;
    uid_t uid;
    gid_t gid;
    bool own_user;

    /* objects.c */
    bool pods_synced;

    /* own_node.c */
    struct api_kvs labels;
    struct api_taint *taints;
    size_t n_taints;
    bool boot_compared; /* the boot id of this boot and the apiserver's */
    bool node_settled;  /* no Node was kept either: admission uses the configuration */

    /* reports.c */
    struct cluster_report *reports;
    uv_idle_t turn; /* active while there is a change to report */
    uv_timer_t node_timer, slow_timer;
    bool node_due;
    uint64_t node_hash;
    uint64_t events_dropped;

    /* needs.c */
    struct cluster_need *needs;
    unsigned count;
    uint64_t namespaces; /* a sum over the namespaces of all pods, to detect changes */

    /* services.c */
    struct cluster_service *services;
    size_t service_bytes;
    unsigned service_link;     /* counts links */
    bool services_known;       /* a first set was complete */
    struct strs services_kept; /* until then: the namespaces for which the copies on disk are used */

    /* runtime_classes.c */
    struct cluster_class *classes;
    unsigned class_link; /* counts links */
    bool classes_known;  /* a first set was complete */
    bool classes_kept;   /* until then: the copies on disk were used */

    /* storage.c, bound.c */
    struct cluster_thing *things;
    uv_timer_t storage_timer;
    struct node_driver_link drivers_link;
    struct boot_time synced_at; /* since when the pods are known */
    bool swept;                 /* volumes that an earlier run left staged are known, too */
    json_t *in_use, *attached;  /* volumesInUse and volumesAttached of the Node; NULL: none */

    /* csi_drivers.c */
    struct cluster_driver *drivers;
    unsigned driver_link; /* counts links */
    bool drivers_known;   /* a first set was complete */
    bool drivers_kept;    /* until then: the copies on disk were used */
    json_t *drivers_seen; /* names that registered in this run */
    uv_timer_t ask_timer;

    /* trust_bundles.c */
    struct cluster_trust_want *trust_wants;
    struct cluster_trust *trust;
    size_t trust_bytes;
    unsigned trust_link; /* counts links */

    /* tokens.c */
    struct pod_tokens tokens;
    struct cluster_token *token_table;
    json_int_t last_id;

    /* keep.c */
    struct kept *kept;
    char *keep_dir;
    uv_timer_t keep_timer;
    bool keep_loaded, keep_use; /* keep_use: objects of this load enter the store */
    bool keep_skipped;          /* this load read a copy that was not used */

    /* show.c */
    json_t *state; /* the last `state` message */
    json_t *parts; /* the last `parts` message */
    char *trouble; /* with the credentials; NULL: none */
    char *lost;    /* why coracle-kube does not run; NULL */
    unsigned open_handles;
    bool closing;
};

/* ---- send.c ---- */
/* Takes ownership of the message. False: not sent, because the link is lost or full. */
bool cluster_send(struct cluster *c, json_t *message);
/* Whether there is room for messages that are not required. */
bool cluster_has_room(const struct cluster *c);

/* ---- cluster.c ---- */
void cluster_message(struct cluster *c, json_t *message, int fd); /* from coracle-kube */
void cluster_connected(struct cluster *c);                        /* a new link: everything is sent */

/* ---- process.c ---- */
void process_open(struct cluster *c);
void process_close(struct cluster *c);
bool process_live(const struct cluster *c);

/* ---- objects.c ---- */
void objects_put(struct cluster *c, const json_t *object);
void objects_gone(struct cluster *c, const json_t *message);
void objects_synced(struct cluster *c, const json_t *message);
void objects_denied(struct cluster *c, const json_t *message);
void objects_to_store(struct cluster *c, const json_t *object);

/* ---- keep.c ---- */
enum err_code keep_open(struct cluster *c, struct err *e) MUST_CHECK;
void keep_close(struct cluster *c);
void keep_free(struct cluster *c);
void keep_state(struct cluster *c); /* called after a new `state` */
void keep_sweep(struct cluster *c); /* the pods are known: drops copies to which no pod refers */
json_t *keep_explain(void *cluster);

/* ---- own_node.c ---- */
json_t *own_node_keep(const struct cluster *c); /* NULL: unknown */
void own_node_use(struct cluster *c, const json_t *object);
void own_node_put(struct cluster *c, const json_t *object);
bool own_node_may_come(const struct cluster *c);
void own_node_settle(struct cluster *c); /* all kept copies have been applied */
void own_node_free(struct cluster *c);

/* ---- reports.c ---- */
void reports_open(struct cluster *c);
void reports_close(struct cluster *c);
void reports_free(struct cluster *c);
void reports_all(struct cluster *c); /* on a new link */
void reports_pod(struct pod *p, void *cluster);
void reports_pod_gone(const struct pod *p, void *cluster);
void reports_event(json_t *event, void *cluster);
void reports_node(void *cluster); /* the node has changed: reported in this turn of the loop */
void reports_wake(struct cluster *c);

/* ---- needs.c ---- */
void needs_count(struct cluster *c);  /* over all pods: sends `need` and `drop` */
void needs_untold(struct cluster *c); /* on a new link */
void needs_changed(struct cluster *c, const struct api_config *config);         /* writes the copy on disk */
void needs_secret(struct cluster *c, const char *namespace_, const char *name); /* in a count */
void needs_free(struct cluster *c);

/* ---- storage.c ---- */
void storage_open(struct cluster *c);
void storage_close(struct cluster *c);
void storage_free(struct cluster *c);
/* In a count of needs.c: the claim of a pod's volume, and the objects that follow from it. */
void storage_need_claim(struct cluster *c, const struct api_pod *api, const struct api_volume *v);
void storage_count(struct cluster *c);  /* after a count */
void storage_untold(struct cluster *c); /* on a new link */
struct cluster_thing *storage_find(const struct cluster *c, enum thing_kind kind, const char *namespace_,
                                   const char *name); /* NULL: not needed */
bool storage_kind(const char *kind, enum thing_kind *ret);
bool storage_put(struct cluster *c, enum thing_kind kind, const json_t *object);
void storage_gone(struct cluster *c, enum thing_kind kind, const char *namespace_, const char *name);
void storage_denied(struct cluster *c, enum thing_kind kind, const char *namespace_, const char *name,
                    const char *why);
void storage_hot(struct cluster *c, struct cluster_thing *t, bool hot); /* whether a pod waits for it */
void storage_look(struct cluster *c, struct cluster_thing *t);
void storage_wake(struct cluster *c);                            /* waiting pods check again */
json_t *storage_keep(const struct cluster *c, const char *name); /* NULL: unknown */
bool storage_is_needed(const struct cluster *c, const char *name);
bool storage_use(struct cluster *c, const char *name,
                 const json_t *object);        /* false: not an object of storage */
bool storage_wanting(const struct cluster *c); /* whether a pod waits for an object */

/* ---- bound.c ---- */
void bound_open(struct cluster *c);
void bound_free(struct cluster *c);
/* volumesInUse of the node's status, new; NULL: not known yet. */
json_t *bound_in_use(struct cluster *c);
void bound_node(struct cluster *c, const json_t *status); /* the status of the apiserver's Node */

/* ---- csi_drivers.c ---- */
enum err_code csi_drivers_open(struct cluster *c, struct err *e) MUST_CHECK;
void csi_drivers_close(struct cluster *c);
void csi_drivers_free(struct cluster *c);
void csi_drivers_put(struct cluster *c, const json_t *object);
void csi_drivers_gone(struct cluster *c, const char *name);
void csi_drivers_synced(struct cluster *c);
void csi_drivers_again(struct cluster *c); /* on a new link */
bool csi_drivers_known(const struct cluster *c);
bool csi_drivers_attach(const struct cluster *c,
                        const char *driver); /* whether its volumes have to be attached */
/* Whether nodeAllocatableUpdatePeriodSeconds is set. */
bool csi_drivers_limits_change(const struct cluster *c, const char *driver);
json_t *csi_drivers_keep(const struct cluster *c); /* NULL: the first set is not complete */
void csi_drivers_use(struct cluster *c, const json_t *kept);
void csi_drivers_report(struct cluster *c);                  /* reports the registered drivers */
void csi_drivers_registered(void *cluster);                  /* called when the registered drivers changed */
void csi_drivers_ask(struct cluster *c, const char *driver); /* requests the driver's volume limit */

/* ---- services.c ---- */
void services_put(struct cluster *c, const json_t *object);
void services_gone(struct cluster *c, const char *namespace_, const char *name);
void services_synced(struct cluster *c);
void services_again(struct cluster *c); /* on a new link */
bool services_each(const char *namespace_, node_service_fn each, void *to, void *cluster);
void services_changed(struct cluster *c); /* writes the kept Services again */
json_t *services_keep(struct cluster *c); /* NULL: the first set is not complete */
void services_use(struct cluster *c, const json_t *kept);
void services_free(struct cluster *c);

/* ---- runtime_classes.c ---- */
bool runtime_classes_put(struct cluster *c,
                         const json_t *object); /* false: the class cannot be kept, which was logged */
void runtime_classes_gone(struct cluster *c, const char *name);
void runtime_classes_synced(struct cluster *c);
void runtime_classes_again(struct cluster *c); /* on a new link */
bool runtime_classes_are_known(void *cluster);
void runtime_classes_free(struct cluster *c);
json_t *runtime_classes_keep(const struct cluster *c); /* NULL: the first set is not complete */
void runtime_classes_use(struct cluster *c, const json_t *kept);

/* ---- trust_bundles.c ---- */
void trust_need(struct cluster *c, const struct api_payload_source *s); /* in a count of needs.c */
void trust_count(struct cluster *c);                                    /* after a count */
void trust_again(struct cluster *c);                                    /* on a new link */
void trust_put(struct cluster *c, const json_t *object);
void trust_gone(struct cluster *c, const char *name);
void trust_synced(struct cluster *c, const json_t *message);
void trust_denied(struct cluster *c, const json_t *message, const char *why);
/* node_cluster.trust */
enum err_code trust_anchors(const struct api_payload_source *s, const char *pod_uid, struct buf *ret,
                            struct err *e, void *cluster) MUST_CHECK;
json_t *trust_keep(const struct cluster *c);
void trust_use(struct cluster *c, const json_t *kept);
bool trust_wanting(const struct cluster *c); /* whether a pod waits for an object */
void trust_free(struct cluster *c);

/* ---- tokens.c ---- */
void tokens_open(struct cluster *c);
void tokens_answer(struct cluster *c, const json_t *message);
void tokens_again(struct cluster *c); /* on a new link */
void tokens_pod_gone(struct cluster *c, const char *uid);
void tokens_free(struct cluster *c);
json_t *tokens_keep(struct cluster *c, const char *name); /* NULL: there is none */
void tokens_use(struct cluster *c, const char *name, const json_t *kept);
bool tokens_wanting(const struct cluster *c); /* whether a pod waits for an object */

/* ---- show.c ---- */
void show_state(struct cluster *c, const json_t *message);
void show_parts(struct cluster *c, const json_t *message);
json_t *show_explain(void *cluster);
void show_metrics(struct buf *out, void *cluster);
#endif
