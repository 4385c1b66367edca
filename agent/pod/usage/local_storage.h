/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_storage - what pods with such limits write to the node's disk: emptyDir.sizeLimit, and
 * limits.ephemeral-storage of containers (their writable layer and logs) and of all of them together.
 *
 * Who exceeds one is evicted, in kubelet's words: phase Failed, reason Evicted, one second of grace.  There
 * is no quota below it: each tree is scanned (base/disk_usage.h) LOCAL_PERIOD_MS after its last scan was
 * over, so a limit can be exceeded for that long.  Pods without such limits are not scanned, and where no pod
 * has one nothing runs.  A file that was removed and is still open is not counted, as in kubelet.
 *
 * All scans together get LOCAL_SHARE of one processor: after each slice everything rests for as long as that
 * takes.  Trees take turns, so a tree of a million files takes minutes and holds up no other.
 *
 * Loop thread; the scans run on the pool, one at a time.
 */
#ifndef AGENT_POD_USAGE_LOCAL_STORAGE_H
#define AGENT_POD_USAGE_LOCAL_STORAGE_H
#include "agent/pod/core/pod.h"
#include "base/disk_usage.h"

#define LOCAL_PERIOD_MS 10000 /* kubelet's interval of looking at limits; its figures are a minute old */
#define LOCAL_SLICE_NS 5000000
#define LOCAL_SHARE 100 /* one part of so many */

enum local_kind { LOCAL_VOLUME, LOCAL_LAYER, LOCAL_LOG };

struct local_tree {
    enum local_kind kind;
    size_t index; /* of the volume in the manifest, or in pod.ctrs */
    bool known;
    struct disk_usage_sum sum; /* of the last scan that came to its end */
    int64_t at_ns;             /* wall clock, of its end */
    /* private */
    struct pod *pod;
    uint64_t due_ms;         /* clock_mono_ms() */
    struct disk_usage *scan; /* under way */
    char id[65];             /* LOCAL_LAYER: of the run that is or was scanned */
    TAILQ_ENTRY(local_tree) link;
};

struct local_pod { /* pod.local; NULL: it is not measured */
    size_t n;
    struct local_tree trees[]; /* containers: layer and log, one after the other; then volumes */
};

/* The pod is active: it is measured from now on if it has such limits.  Again and again is fine. */
void local_storage_step(struct pod *p);
/* It ends: measured no more. */
void local_storage_forget(struct pod *p);

/* What is known of one; NULL: nothing, or it is not measured. */
const struct local_tree *local_storage_find(const struct pod *p, enum local_kind kind, size_t index);
/* Of a pod that is measured: one step. */
void local_storage_explain(const struct pod *p, json_t *steps);

/* Looks who is due now; for tests. */
void local_storage_now(struct node *n);

bool local_storage_busy(const struct node *n);
void local_storage_close(struct node *n); /* from node_free() */

/* ---- local_limits.c: pure ---------------------------------------------------------------------- */
/* Which trees a pod is measured by; NULL: it has no such limits, or may not be evicted. */
struct local_pod *local_limits_trees(struct pod *p);
/* Is a limit exceeded?  *ret is kubelet's message then, malloc'ed; also NULL for want of memory. */
bool local_limits_exceeded(const struct pod *p, char **ret);
/* Everything that counts for the pod is measured, as one of its containers has a limit. */
bool local_limits_whole(const struct pod *p);
/* All that is measured of it together; false: some part of it is not known yet. */
bool local_limits_sum(const struct pod *p, struct disk_usage_sum *ret);
#endif
