/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_storage - measures what pods with such limits write to the node's disk: emptyDir.sizeLimit, and
 * limits.ephemeral-storage of containers (their writable layer and logs) and of all of them together.
 *
 * A pod that exceeds one is evicted, in kubelet's words: phase Failed, reason Evicted, one second of grace.
 * There are no quotas: each tree is scanned (base/files/disk_usage.h) LOCAL_PERIOD_MS after its last scan
 * ended, so a limit can be exceeded for that long. Pods without such limits are not scanned; if no pod has
 * one, nothing runs. Deleted files that are still open are not counted, as in kubelet.
 *
 * All scans together get LOCAL_SHARE of one CPU: after each slice comes a corresponding pause. Trees take
 * turns, so a tree of a million files takes minutes but delays no other.
 *
 * Loop thread; the scans run on the pool, one at a time.
 */
#ifndef AGENT_POD_USAGE_LOCAL_STORAGE_H
#define AGENT_POD_USAGE_LOCAL_STORAGE_H
#include "agent/pod/usage/usage.h"
#include "base/files/disk_usage.h"

#define LOCAL_PERIOD_MS 10000 /* kubelet's interval for checking limits; its figures are a minute old */
#define LOCAL_SLICE_NS 5000000
#define LOCAL_SHARE 100 /* one part in this many */

enum local_kind { LOCAL_VOLUME, LOCAL_LAYER, LOCAL_LOG };

struct local_tree {
    enum local_kind kind;
    size_t index; /* of the volume in the manifest, or in pod.ctrs */
    bool known;
    struct disk_usage_sum sum; /* of the last scan that came to its end */
    int64_t at_ns;             /* wall clock of its end */
    /* private */
    struct pod *pod;
    uint64_t due_ms;         /* clock_mono_ms() */
    struct disk_usage *scan; /* in progress */
    char id[65];             /* LOCAL_LAYER: of the run that is or was scanned */
    TAILQ_ENTRY(local_tree) link;
};

struct local_pod { /* pod.local; NULL: not measured */
    size_t n;
    struct local_tree trees[]; /* containers: layer and log in turn; then volumes */
};

/* The pod is active: measures it from now on if it has such limits. May be repeated. */
void local_storage_step(struct pod *p);
/* It ends: no longer measured. */
void local_storage_forget(struct pod *p);

/* The result for one; NULL: none, or not measured. */
const struct local_tree *local_storage_find(const struct pod *p, enum local_kind kind, size_t index);

/* Checks which are due now; for tests. */
void local_storage_now(struct node *n);

bool local_storage_busy(const struct node *n);
void local_storage_close(struct node *n); /* from node_free() */

/* ---- local_limits.c: pure ---- */
/* The trees to measure for a pod; NULL: it has no such limits, or may not be evicted. */
struct local_pod *local_limits_trees(struct pod *p);
/* Whether a limit is exceeded. *ret is kubelet's message then, malloc'ed; NULL when out of memory. */
bool local_limits_exceeded(const struct pod *p, char **ret);
/* Everything of the pod is measured, because a container has a limit. */
bool local_limits_whole(const struct pod *p);
/* The sum of everything measured; false: a part is not known yet. */
bool local_limits_sum(const struct pod *p, struct disk_usage_sum *ret);
#endif
