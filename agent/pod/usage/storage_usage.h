/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage_usage - a pod's usage of the node's disks: each container's writable layer and logs, and its local
 * volumes, in bytes (of allocated blocks) and inodes, as kubelet counts them (pkg/kubelet/stats; an emptyDir
 * on disk is local, one in memory is not).
 *
 * A tree that has a project (agent/pod/project/project.h) is read from the kernel's quota within
 * microseconds, at the moment of the question. Others have the result of their last scan (local_storage.h):
 * pods with limits of local storage are scanned all the time, and all pods after storage_usage_measure(). A
 * tree that was never scanned is not known. A tree that does not exist uses nothing, which is known.
 *
 * Loop thread.
 */
#ifndef AGENT_POD_USAGE_STORAGE_USAGE_H
#define AGENT_POD_USAGE_STORAGE_USAGE_H
#include "agent/pod/core/pod.h"

struct storage_part {
    bool known;
    bool partial; /* a part of the tree could not be read: at least this much */
    bool exact;   /* of the quota, as of now */
    uint64_t bytes, inodes;
    int64_t at_ns; /* wall clock; when it was measured */
};

/* `ctr` is an index into pod.ctrs, `volume` one into the manifest's list. */
struct storage_part storage_usage_layer(const struct pod *p, size_t ctr);
struct storage_part storage_usage_log(const struct pod *p, size_t ctr);
/* Not known for a volume that is not local. */
struct storage_part storage_usage_volume(const struct pod *p, size_t volume);

/* Sums. Known only if all parts are; otherwise the sum of those that are known. at_ns is the oldest. */
struct storage_part storage_usage_volumes(const struct pod *p); /* local ones */
struct storage_part storage_usage_pod(const struct pod *p);     /* with all layers and logs */

/* ---- for pressure ---- */

/*
 * A disk of the node is running full: determines figures of all pods, none older than `max_age_ms`. Trees
 * with projects have them already; other trees are scanned with LOCAL_SHARE_ASKED of a CPU (local_storage.h).
 * `done` is called on a later turn of the loop: when all figures are known, or after `deadline_ms` with the
 * known ones (complete is false). A second call replaces the first one's `done`. False: no memory, `done` is
 * not called.
 */
bool storage_usage_measure(struct node *n, uint64_t max_age_ms, uint64_t deadline_ms,
                           void (*done)(struct node *n, bool complete));

/* A quota warning of some tree: called when one arrived, before limits of the pod are checked. `path` is the
 * tree's. For the pace of the disk's measurements. NULL: no callback. */
void storage_usage_on_growth(struct node *n, void (*fn)(struct node *n, const char *path));

void storage_usage_close(struct node *n); /* from node_free() */
#endif
