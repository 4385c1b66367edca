/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_storage - measures the usage of the node's disk by pods with such limits: emptyDir.sizeLimit, and
 * limits.ephemeral-storage of containers (their writable layer and logs) and of all of them together.
 *
 * A pod that exceeds one is evicted, in kubelet's words: phase Failed, reason Evicted, one second of grace.
 *
 * A tree with a project (agent/pod/project/project.h) gets soft limits (local_plan.h) whose warnings wake the
 * agent, which then reads the usage of all trees of the pod and evicts at once: nothing is polled in between.
 * Removed files that are still open count. With storageLimits: enforce, or the pod's annotation
 * coracle.dev/storage-limits, such trees get hard limits: writes beyond them are refused (ENOSPC on XFS,
 * EDQUOT on ext4), and the pod stays.
 *
 * Any other tree is scanned (base/files/disk_usage.h) LOCAL_PERIOD_MS after its last scan ended, so a limit
 * can be exceeded for that long; a quota that gives no warnings is read as often. Deleted files that are
 * still open are not counted by a scan, as in kubelet. If no pod has a limit, nothing runs; pods without
 * limits are scanned once each time a disk runs short (storage_usage.h).
 *
 * All scans together get LOCAL_SHARE of one CPU, LOCAL_SHARE_ASKED while a disk is short: after each slice
 * comes a corresponding pause. Trees take turns, so a tree of a million files takes minutes but delays no
 * other.
 *
 * Loop thread; the scans run on the pool, one at a time.
 */
#ifndef AGENT_POD_USAGE_LOCAL_STORAGE_H
#define AGENT_POD_USAGE_LOCAL_STORAGE_H
#include "agent/pod/usage/local_plan.h"
#include "agent/pod/usage/usage.h"
#include "base/files/disk_usage.h"

#define LOCAL_PERIOD_MS 10000 /* kubelet's interval for checking limits; its figures are a minute old */
#define LOCAL_SLICE_NS 5000000
#define LOCAL_SHARE 100 /* one part in this many */
#define LOCAL_SHARE_ASKED 10
#define LOCAL_NEVER UINT64_MAX

struct local_tree {
    enum local_kind kind;
    size_t index; /* of the volume in the manifest, or in pod.ctrs */
    bool known;
    struct disk_usage_sum sum; /* of the last scan that came to its end */
    int64_t at_ns;             /* wall clock of its end */
    /* private */
    struct pod *pod;
    uint64_t due_ms;         /* clock_mono_ms(); LOCAL_NEVER: on request, or when the kernel warns */
    bool quota;              /* has a project that is included in the plan of the pod's limits */
    uint32_t project;        /* then its id */
    bool limited;            /* a limit covers it */
    bool asked;              /* storage_usage_measure() waits for it */
    struct disk_usage *scan; /* in progress */
    char id[65];             /* LOCAL_LAYER: of the run that is or was scanned */
    TAILQ_ENTRY(local_tree) link;
};

struct local_pod {
    struct arm *arm; /* its limits are being set (local_quota.c); NULL: not now */
    bool arm_again;  /* and once more after that */
    bool enforced;   /* by hard limits, as last set */
    char hard[1024]; /* trees that reached theirs, for people: "emptyDir cache" */
    size_t n;
    struct local_tree trees[]; /* containers: layer and log in turn; then volumes */
};

/* The pod is active: measures it from now on if it has such limits. May be repeated. */
void local_storage_step(struct pod *p);
/* It ends: no longer measured; the last figures are kept. */
void local_storage_rest(struct pod *p);

/* The result for one: of its quota as of now, else of its last scan; NULL: none, or not measured. */
const struct local_tree *local_storage_find(const struct pod *p, enum local_kind kind, size_t index);
/* Where it is; for a layer the folder that has the project, or the one that is scanned. */
bool local_storage_path(const struct pod *p, enum local_kind kind, size_t index, bool scan, char *ret,
                        size_t size);
/* Ends a pod that exceeds a limit. */
void local_storage_judge(struct pod *p);
/* Scans its trees once, as soon as possible: those without a quota that are not known since then (wall
 * clock). */
void local_storage_ask(struct pod *p, int64_t older_than_ns);
size_t local_storage_asked(const struct node *n); /* how many of them are not scanned yet */
void local_storage_on_asked(struct node *n, void (*fn)(struct node *n)); /* one of them is */

/* ---- local_quota.c ---- */
/* Trees may have got or lost their projects: limits are set accordingly. */
void local_quota_step(struct pod *p);
void local_quota_arm(struct pod *p); /* sets the limits again, by the current usage */
void local_quota_forget(struct pod *p);
void local_quota_open(struct node *n);

/* Checks which are due now; for tests. */
void local_storage_now(struct node *n);

bool local_storage_busy(const struct node *n);
void local_storage_close(struct node *n); /* from node_free() */

/* ---- local_limits.c: pure ---- */
/* The trees to measure for a pod; NULL: it has no such limits, or may not be evicted. */
struct local_pod *local_limits_trees(struct pod *p);
/* All its trees except those; NULL: there are none. */
struct local_pod *local_limits_others(struct pod *p);
/* Its limits, as many as fit; returns their number. */
size_t local_limits_list(const struct pod *p, struct plan_limit *ret, size_t max);
/* Whether the kernel enforces its limits instead of eviction, by the annotation or the setting. */
bool local_limits_enforced(const struct pod *p);
/* Whether a limit is exceeded. *ret is kubelet's message then, malloc'ed; NULL when out of memory. */
bool local_limits_exceeded(const struct pod *p, char **ret);
/* Everything of the pod is measured, because a container has a limit. */
bool local_limits_whole(const struct pod *p);
/* The sum of everything measured; false: a part is not known yet. */
bool local_limits_sum(const struct pod *p, struct disk_usage_sum *ret);
#endif
