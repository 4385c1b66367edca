/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pods - pods of this node at the apiserver, and their way to and from the daemon
 * (pkg/kubelet/config/apiserver.go, pkg/kubelet/status/status_manager.go).
 *
 * The watch begins once the Node was seen. A pod is sent to the daemon when anything but its own status
 * changed; mirror pods are not. A status that the daemon sends is merged with the apiserver's (pod_merge.h)
 * and sent as a patch if it differs, one pod after the other: what changed meanwhile goes along in one patch.
 * kubelet GETs the pod before each patch; the watch and the answers to patches have it already. When the
 * apiserver loses a status, the watch shows that, and the status is sent again. A pod that fails waits (1 s,
 * doubled up to 10 s; 10 s up to 5 min where the apiserver refuses it) and holds up no other.
 */
#ifndef AGENT_KUBE_SYNC_PODS_H
#define AGENT_KUBE_SYNC_PODS_H
#include "agent/kube/decide/mirror.h"
#include "agent/kube/decide/pod_decide.h"
#include "agent/kube/sync/internal.h"

#define PODS_MAX 4096 /* of one node, finished ones included */
/* After this time without a message for it, a mirror has no static pod: the daemon reports all pods within
 * seconds of its start. */
#define PODS_TOLD_MS 30000

struct our_pod { /* last sent by the daemon */
    char *uid;
    char *status;   /* JSON */
    char *manifest; /* JSON: metadata and spec, of a static pod only */
    char hash[MIRROR_HASH_SIZE];
    bool is_static, ended;
    /* A patch was accepted, but the answer still differs: it is not sent again while both stay. */
    uint64_t accepted_status;
    char accepted_version[32];
    LIST_ENTRY(our_pod) link;
};

struct pod_entry { /* all that has one name */
    char *key;     /* "namespace/name" */
    char *namespace_, *name;
    /* as the apiserver has it */
    bool there, leaving, deleted /* by us */, orphan /* its static pod is gone for certain */;
    char *uid, *version, *mirror /* hash; NULL: no mirror */, *status /* JSON */;
    uint64_t forwarded;
    LIST_HEAD(, our_pod) ours;
    bool dirty;
    uint64_t wait_ms, not_before_ms;
    TAILQ_ENTRY(pod_entry) queued;
    UT_hash_handle hh;
};

struct pods_part {
    struct kube_sync *sync;
    struct kube_reflector *reflector;
    struct pod_entry *entries;
    TAILQ_HEAD(, pod_entry) queue; /* dirty ones */
    struct sync_call call;
    struct sync_timer timer, told_timer;
    struct pod_entry *writing; /* of call */
    char *writing_uid;         /* of our pod, "": none; of the one to delete */
    enum pod_action action;
    uint64_t writing_status; /* hash of our status as it was sent */
    bool started, told;
};

/* ---- pod_table.c ---- */
struct pod_entry *pod_entry_of(struct pods_part *p, const char *namespace_,
                               const char *name);                 /* NULL: no memory */
void pod_entry_release(struct pods_part *p, struct pod_entry *e); /* freed if nothing is known of the name */
void pod_entry_free(struct pods_part *p, struct pod_entry *e);
/* The apiserver's object; false: older than the known version, or no memory. */
bool pod_entry_see(struct pod_entry *e, const json_t *object);
void pod_entry_unsee(struct pod_entry *e);
struct our_pod *our_pod_find(const struct pod_entry *e, const char *uid);
/* The pod of ours that the apiserver's object is about, or (mirrors to be made) the static one. */
struct our_pod *our_pod_of(const struct pod_entry *e);
void our_pod_free(struct our_pod *o);
/* ---- pod_writer.c ---- */
void pods_queue(struct pods_part *p, struct pod_entry *e);
void pods_write(void *part);
#endif
