/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod - one pod of this node and its worker's state.  Private to agent/pod.
 *
 *             admitted            a regular container started
 *     PENDING ---------> STARTING ---------------------------> RUNNING
 *      |   |                 |                                    |
 *      |   | manifest gone   | manifest gone or all are done      |
 *      |   v                 v                                    |
 *      |  TERMINATING <------+------------------------------------+
 *      |       | all gone
 *      |       v
 *      +--> TERMINATED ---> freed, when the manifest is gone
 *    rejected   |
 *               +---------> PENDING, when a shutdown of the machine had ended it (shutdown.h)
 *
 * Works by level: events only call pod_wake(); pod_reconcile() re-reads the facts, compares them with what
 * the manifest asks for and starts the operations that are missing.  Every operation reports back through its
 * done callback, which records the outcome and wakes.
 *
 * What waits is a struct boot_time; an int64_t ..._ns is a wall time for people, or a duration
 * (base/clock.h).
 */
#ifndef AGENT_POD_CORE_POD_H
#define AGENT_POD_CORE_POD_H
#include "agent/pod/core/ctr.h"
#include "agent/pod/core/node.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/core/start_times.h"
#include "base/boot_timer.h"
#include "base/files/fs.h"
#include "base/list.h"

#define POD_IFNAME "eth0" /* kubelet's; the one interface that a pod gets */

enum pod_state { POD_PENDING, POD_STARTING, POD_RUNNING, POD_TERMINATING, POD_TERMINATED };
const char *pod_state_name(enum pod_state s);

/* Before a container's id and the version in the Node's containerRuntimeVersion: tools identify runtimes by
 * it, and in Kubernetes both name the runtime that created the container, not the OCI runtime below it. */
#define POD_RUNTIME_SCHEME "coracle://"

#define POD_KEY_SIZE 320
/* Ephemeral containers that a pod may get after it was made: each `kubectl debug` or `coracle debug` adds
 * one. Kubernetes has no limit but the size of the object; here each takes about 4 KiB. */
#define POD_EPHEMERAL_MAX 32

struct pod {
    struct node *node;
    char key[POD_KEY_SIZE]; /* "namespace/name" */
    char uid[132];
    struct api_pod *api;       /* the accepted manifest */
    char manifest_file[256];   /* its file in the manifest folder; "" while unknown */
    struct api_pod *successor; /* an edit that needs a new pod: starts when this one is gone */
    bool wanted;               /* the store still has it (or confirmed not yet after a restart) */
    bool recovered;            /* taken over from an earlier run and not yet compared with the store */
    bool unseen;               /* taken over, and its namespaces could not be read yet: it is left alone */
    bool rebooted;             /* that earlier run was before a reboot of the machine */

    enum pod_state state;
    int64_t created_ns, state_since_ns,
        start_time_ns; /* wall clock; of the last two what counts from them: */
    struct boot_time state_began, active_began;
    struct boot_time seen_at; /* when it was new; none: it was an earlier agent's */
    bool admitted, rejected;
    bool unscheduled; /* pending: a pod of a workload that the node does not take now (admit_schedule()) */
    char phase[16];   /* final phase once terminal: "Succeeded", "Failed"; else "" */
    char reason[64];
    char *message;
    char *measured; /* evicted: its usage, for users; NULL */
    int32_t priority;
    int64_t deletion_ns;   /* when its end was requested; 0 */
    int64_t grace_seconds; /* in force while terminating */
    int64_t asked_grace_s; /* of a deletion that is being written, with grace_asked */
    bool grace_asked;
    bool preempting;      /* pending: others were ended for it, what they had is its own */
    int64_t preempted_ns; /* when it was ended for a critical one; 0 */
    int64_t evicted_ns;   /* when it was evicted (evict.h); 0 */
    bool disrupted;       /* evicted because the node was short of something */
    unsigned disruptions; /* consecutive evictions of it and its predecessors: each increases the delay
                           * before it starts again */
    bool kill_now;        /* its containers are not asked to end */
    int64_t shutdown_ns;  /* when a shutdown of the machine ended it, or had it refused; 0 */
    bool finishing;       /* terminating because all its containers are done; not because it was removed */

    /* Init containers first, then regular ones, in spec order, then ephemeral ones as they were added. */
    struct ctr **ctrs;
    size_t n_ctrs, max_ctrs;

    char sandbox_id[65]; /* "" : it has no sandbox */
    bool cgroup_made;

    bool initialized;   /* some regular container has started */
    bool start_counted; /* agent_metrics.h */
    struct start_times start_times;

    bool dirty_queued, record_dirty, freed;
    bool record_durable; /* some record of it is on the disk: its containers may start */
    bool record_failing; /* it cannot be written: nothing waits for it */
    struct pod_look look;
    struct boot_timer timer;
    const char *timer_why, *woken_why; /* the reasons given to pod_wake_at() and pod_wake() */
    TAILQ_ENTRY(pod) dirty_link;
    UT_hash_handle hh;
    void *parts[ROOMS]; /* what each room keeps of it: room.h */
};

/* ---- in this room: waking, states, the table ---- */
/* Reconcile soon, on a later step of the loop.  `why`, a constant, is for the log at debug level. */
void pod_wake(struct pod *p, const char *why);
/* Wake again then, unless something earlier is due; called during reconcile only. */
void pod_wake_at(struct pod *p, struct boot_time at, const char *why);
void pod_set_state(struct pod *p, enum pod_state s);
void pod_set_initialized(struct pod *p, bool initialized);
/* 68 years: longer times in a manifest would overflow in ns. */
#define GRACE_MAX_SECONDS INT32_MAX
/* Each pod of the node; the one at hand may be freed within. */
#define pods_each(n, p)                                                                                      \
    for (struct pod *p = (n)->pods, *p##_next = p != NULL ? p->hh.next : NULL; p != NULL;                    \
         p = p##_next, p##_next = p != NULL ? p->hh.next : NULL)
struct pod *pods_find(struct node *n, const char *namespace_, const char *name);
struct pod *pods_by_uid(struct node *n, const char *uid);
struct ctr *pods_by_container(struct node *n, const char *id);
void pods_key(char ret[POD_KEY_SIZE], const char *namespace_, const char *name);

/* ---- upward.c ---- asked of the worker ---- */
void pod_ask_end(struct pod *p, int64_t grace_seconds, const char *why); /* as a pod that ended on its own */
bool pod_ask_idle(const struct pod *p);                                  /* no operation of it is under way */
void pod_ask_apply(struct pod *p, struct api_pod *api);                  /* takes an edit over in place */
void pod_ask_recover(struct pod *p); /* compares its record with the facts once more */
void node_ask_ready(struct node *n); /* the node's Ready condition may have changed */
#endif
