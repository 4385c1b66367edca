/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - the pod cgroup tree on v2, v1 and hybrid hosts, behind one interface.
 *
 * Tree below the root chosen by the caller (e.g. "/" or "/system.slice/coracle-pods.service"):
 *
 *     <root>/kubepods                            all pods: limit of the node
 *     <root>/kubepods/burstable, /besteffort     QoS classes
 *     <root>/kubepods[/<class>]/pod<uid>         one pod
 *     <root>/kubepods[/<class>]/pod<uid>/<id>    one container: created by the OCI runtime
 *     <root>/coracle/conmon, <root>/coracle/ops  the supervisors; short-lived children of the agent
 *
 * On v1 and hybrid hosts each path exists in every controller's hierarchy. The agent writes the node, QoS and
 * pod levels; the OCI runtime writes the leaf. This folder has no notion of pods. All calls are local to
 * cgroupfs and quick; loop thread.
 */
#ifndef CGROUPS_CGROUP_H
#define CGROUPS_CGROUP_H
#include "base/presence.h"
#include "base/scope.h"
#include "base/strs.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cg_layout { CG_V2, CG_V1, CG_HYBRID /* v1 controllers and a v2 tree */ };

struct cg_tree;

struct cg_options {
    const char *root; /* "/..." below the cgroup file system; created if missing */
    /*
     * A folder of the agent.  crun rejects a hybrid whose v2 side has controllers, so those (hugetlb) are
     * held as v1 until cg_close(): mounted below this folder, and detached at once.
     */
    const char *scratch_dir;
};

/* ERR_EXISTS: another agent uses this root. ERR_PRECONDITION: <root>/kubepods has processes of other
 * software, or something is missing; nothing was changed. */
enum err_code cg_open(struct cg_tree **ret, const struct cg_options *o, struct err *e) MUST_CHECK;
/* Closes the tree and keeps the cgroups. `remove` (--ephemeral): kills and removes the cgroups that cg_open()
 * and other callers created below root; removes <root> itself if we created it. */
void cg_close(struct cg_tree *t, bool remove);
enum cg_layout cg_layout(const struct cg_tree *t);

/* Calls fn for each missing controller, with the features that depend on it. */
void cg_missing(const struct cg_tree *t, void (*fn)(const char *controller, const char *disables, void *arg),
                void *arg);
/*
 * Calls fn with each controller that is held as v1.  These limit nothing.
 */
void cg_held(const struct cg_tree *t, void (*fn)(const char *controller, void *arg), void *arg);

/* v2: memory.min and memory.low below <root> are capped by those of <root> and its ancestors. Returns the
 * smallest of these in bytes, and in *ret_where its cgroup ("/system.slice"); INT64_MAX if there is no
 * ancestor. */
int64_t cg_protected_above(const struct cg_tree *t, char *ret_where, size_t size);

/* Whether huge pages can be limited.  False on a hybrid where hugetlb is held as v1. */
bool cg_has_hugetlb(const struct cg_tree *t);

/* Whether reservations of this size ("2MB") are counted, too: hugetlb.<size>.rsvd.max (v2, Linux 5.7). */
bool cg_has_hugetlb_reserved(const struct cg_tree *t, const char *size);

/* Unit conversions; sources: kubelet pkg/kubelet/cm/helpers_linux.go, opencontainers/cgroups. */
uint64_t cg_shares_from_milli(int64_t milli_cpu); /* clamped to 2..262144; 0 -> 2 */
uint64_t cg_weight_from_shares(uint64_t shares);  /* the current (logarithmic) formula, 1..10000 */
int64_t cg_quota_from_milli(int64_t milli_cpu, int64_t period_us); /* at least 1000; milli 0 -> -1 */

#define CG_CPU_PERIOD_US 100000

struct cg_hugetlb { /* huge pages of one size */
    char size[16];  /* "2MB", "1GB": as in the kernel's file names */
    int64_t bytes;
};

struct cg_limits { /* the complete set: -1 removes a limit; cpu_shares -1 leaves the shares alone */
    int64_t cpu_shares;
    int64_t cpu_quota_us;
    int64_t memory_max;
    /* Memory protected from reclaim: always (min), or while other cgroups have reclaimable memory (low);
     * v2. */
    int64_t memory_min, memory_low;
    int64_t pids_max;
    int64_t cpu_period_us; /* the quota's period; 0: CG_CPU_PERIOD_US */
    /* An OOM kill in this cgroup kills everything at and below it; v2. */
    bool oom_group;
    /* CPUs and memory nodes, "0-3,7"; NULL: unchanged; borrowed. */
    const char *cpus, *mems;
    const struct cg_hugetlb *hugetlb; /* sizes that are not listed stay unchanged; borrowed */
    size_t n_hugetlb;
};
#define CG_LIMITS_NONE                                                                                       \
    {                                                                                                        \
        .cpu_shares = -1, .cpu_quota_us = -1, .memory_max = -1, .memory_min = -1, .memory_low = -1,          \
        .pids_max = -1                                                                                       \
    }

enum cg_class { CG_GUARANTEED, CG_BURSTABLE, CG_BEST_EFFORT };

/* The pod's cgroup relative to the cgroup mount, for OCI cgroupsPath:
 * "/<root>/kubepods/burstable/pod<uid>". */
enum err_code cg_pod_path(const struct cg_tree *t, enum cg_class class_, const char *uid, char *ret,
                          size_t size, struct err *e) MUST_CHECK;
/* Creates (or updates) the pod's cgroup. */
enum err_code cg_pod_apply(struct cg_tree *t, enum cg_class class_, const char *uid,
                           const struct cg_limits *l, struct err *e) MUST_CHECK;
/* <root>/kubepods itself: the limits of all pods together. */
enum err_code cg_node_apply(struct cg_tree *t, const struct cg_limits *l, struct err *e) MUST_CHECK;
/* The cgroup of a QoS class, except CG_GUARANTEED. */
enum err_code cg_qos_apply(struct cg_tree *t, enum cg_class class_, const struct cg_limits *l,
                           struct err *e) MUST_CHECK;
/* Sets limits of an existing cgroup that is not ours, such as "/system.slice": creates and moves nothing, and
 * leaves other limits unchanged. ERR_NOT_FOUND: the cgroup or the controller of a limit does not exist;
 * ERR_PRECONDITION: the pods' own cgroup is inside it. */
enum err_code cg_foreign_apply(struct cg_tree *t, const char *path, const struct cg_limits *l,
                               struct err *e) MUST_CHECK;

/*
 * Sets new cpu and memory limits of a container's existing cgroup (path as for cg_kill()); what *l does not
 * limit becomes unlimited, except the number of processes. memory_high: v2; 0: none; -1: unchanged.
 * ERR_NOT_FOUND: it no longer exists. The kernel's EBUSY (v1): more memory is in use than can be reclaimed.
 */
enum err_code cg_resize(struct cg_tree *t, const char *path, const struct cg_limits *l, int64_t memory_high,
                        struct err *e) MUST_CHECK;

/* Sets the processors and memory nodes of a container's existing cgroup, "0-3,7"; NULL: unchanged.
 * ERR_NOT_FOUND: it no longer exists, or nothing controls them. */
enum err_code cg_set_cpuset(struct cg_tree *t, const char *path, const char *cpus, const char *mems,
                            struct err *e) MUST_CHECK;

/*
 * Kills every process at or below `path` (relative to the cgroup mount: cg_pod_path() plus "/<id>"): with
 * cgroup.kill on v2; otherwise freezes, kills and thaws until it is empty. Returns immediately after sending
 * the signals. Success if the cgroup does not exist; an error if something could not be read, because
 * processes may have been missed.
 */
enum err_code cg_kill(struct cg_tree *t, const char *path, struct err *e) MUST_CHECK;
/* Whether there is any process at or below `path`; absent also when the cgroup does not exist. */
struct presence cg_has_processes(struct cg_tree *t, const char *path, struct err *e) MUST_CHECK;
/* Describes the processes at or below `path` that sleep in the kernel where even SIGKILL does not reach them:
 * "process 412 (cat) in request_wait_answer"; "" if there are none. Reads only /proc/<pid>/stat and wchan,
 * which never block on such a process. */
void cg_stuck(struct cg_tree *t, const char *path, char *ret, size_t size);
/* Removes an empty subtree from all hierarchies; ERR_UNAVAILABLE while processes are left (kill them and
 * retry). */
enum err_code cg_remove(struct cg_tree *t, const char *path, struct err *e) MUST_CHECK;
/* The paths of all existing pod cgroups (strs_done()), for cleaning up after a restart. */
enum err_code cg_list_pods(struct cg_tree *t, struct strs *ret_paths, struct err *e) MUST_CHECK;

/*
 * Our own leaves. Returns a directory descriptor to spawn into, wherever there is a v2 side: starting there
 * needs no move. For ops it is all: being in one hierarchy is enough to be found by the sweep. Otherwise -1.
 * Borrowed.
 */
enum cg_leaf { CG_LEAF_OPS, CG_LEAF_CONMON };
int cg_leaf_fd(struct cg_tree *t, enum cg_leaf leaf);
/* If there is no descriptor: the file `tasks` that a child with one thread joins by, in the hierarchy best
 * suited to kill it (freezer, otherwise pids); otherwise NULL. Borrowed. */
const char *cg_leaf_procs(struct cg_tree *t, enum cg_leaf leaf);
/* Members of a proc_spec or proc_call_spec: the child runs in `ops`. */
#define CG_OPS(t) .cgroup_fd = cg_leaf_fd((t), CG_LEAF_OPS), .cgroup_procs = cg_leaf_procs((t), CG_LEAF_OPS)
/* For a leaf in all hierarchies (conmon): the files `tasks` of the v1 ones, by which a child with one thread
 * joins; NULL-terminated, borrowed. NULL if there are none. */
const char *const *cg_leaf_joins(struct cg_tree *t, enum cg_leaf leaf);
/* Creates a cgroup below a pod's (path as for cg_kill()) and moves a process there in all hierarchies. */
enum err_code cg_place(struct cg_tree *t, const char *path, pid_t pid, struct err *e) MUST_CHECK;
/* Kills the processes that an earlier run of the agent left in the ops leaf and waits up to 2 s until it is
 * empty. ERR_UNAVAILABLE: some are stuck in the kernel; their SIGKILL is pending, so they execute no further
 * instruction. */
enum err_code cg_ops_sweep(struct cg_tree *t, struct err *e) MUST_CHECK;

/* ---- reading ---- */
/* Bytes in use; absent: no such cgroup, or nothing counts memory. */
struct presence cg_read_memory(struct cg_tree *t, const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
#endif
