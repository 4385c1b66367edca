/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - the pod cgroup tree on v2, v1 and the hybrid of both, behind one interface.
 *
 * Tree below the root that the caller names (e.g. "/" or "/system.slice/coracle-pods.service"):
 *
 *     <root>/kubepods                            all pods: limit of the node
 *     <root>/kubepods/burstable, /besteffort     QoS classes
 *     <root>/kubepods[/<class>]/pod<uid>         one pod
 *     <root>/kubepods[/<class>]/pod<uid>/<id>    one container: made by the OCI runtime
 *     <root>/coracle/conmon, <root>/coracle/ops  the supervisors; short-lived children of the agent
 *
 * On v1 and hybrid each path exists in every controller's hierarchy.  The agent writes node, QoS and pod
 * levels; the OCI runtime writes the leaf.  Values in, values out: nothing here knows what a pod is.  All
 * calls are local to cgroupfs and quick; loop thread.
 */
#ifndef CGROUPS_CGROUP_H
#define CGROUPS_CGROUP_H
#include "base/presence.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cg_layout { CG_V2, CG_V1, CG_HYBRID /* v1 controllers plus a v2 tree */ };

struct cg_tree;

struct cg_options {
    const char *root;        /* "/..." below the cgroup file system; created when missing */
    const char *scratch_dir; /* a folder of ours: crun refuses a hybrid whose v2 side has controllers; then
                                these (hugetlb) are mounted as v1 below it while the agent runs */
};

/* ERR_EXISTS: another agent uses this root.  ERR_PRECONDITION: what runs in <root>/kubepods is of other
 * software, or something is missing; nothing was touched. */
enum err_code cg_open(struct cg_tree **ret, const struct cg_options *o, struct err *e) MUST_CHECK;
/* Forgets; keeps the cgroups.  `remove` (--ephemeral): kill and remove what cg_open() and others made below
 * root, unmount what was mounted below scratch_dir; <root> itself is removed when it was created. */
void cg_close(struct cg_tree *t, bool remove);
enum cg_layout cg_layout(const struct cg_tree *t);

/* For each controller that is not there: what is not done for want of it. */
void cg_missing(const struct cg_tree *t, void (*fn)(const char *controller, const char *disables, void *arg),
                void *arg);
/* For each controller that is mounted below scratch_dir: where.  Nothing is limited in it. */
void cg_mounted(const struct cg_tree *t, void (*fn)(const char *controller, const char *point, void *arg),
                void *arg);

/*
 * v2: memory.min and memory.low below <root> protect no more than <root> and the cgroups above it have
 * themselves: the least of these, in bytes, and *ret_where it stands ("/system.slice").  INT64_MAX: nothing
 * is above.
 */
int64_t cg_protected_above(const struct cg_tree *t, char *ret_where, size_t size);

/* Huge pages can be limited here.  Not on a hybrid where hugetlb had to be mounted below scratch_dir. */
bool cg_has_hugetlb(const struct cg_tree *t);

/* On v2 reservations of this size ("2MB") are counted, too: hugetlb.<size>.rsvd.max (Linux 5.7). */
bool cg_has_hugetlb_reserved(const struct cg_tree *t, const char *size);

/* Unit conversions; sources: kubelet pkg/kubelet/cm/helpers_linux.go, opencontainers/cgroups. */
uint64_t cg_shares_from_milli(int64_t milli_cpu); /* clamp 2..262144; 0 -> 2 */
uint64_t cg_weight_from_shares(uint64_t shares);  /* the current (logarithmic) formula, 1..10000 */
int64_t cg_quota_from_milli(int64_t milli_cpu, int64_t period_us); /* at least 1000; milli 0 -> -1 */

#define CG_CPU_PERIOD_US 100000

struct cg_hugetlb { /* huge pages of one size */
    char size[16];  /* "2MB", "1GB": as in the names of the kernel's files */
    int64_t bytes;
};

struct cg_limits { /* the whole set: -1 takes a limit away where the cgroup has one; cpu_shares -1 leaves them
                      alone */
    int64_t cpu_shares;
    int64_t cpu_quota_us;
    int64_t memory_max;
    int64_t memory_min, memory_low; /* memory that is not taken from it, and as long as others have any; v2 */
    int64_t pids_max;
    int64_t cpu_period_us;            /* that the quota counts in; 0: CG_CPU_PERIOD_US */
    bool oom_group;                   /* an OOM kill in this cgroup takes all that runs at and below it; v2 */
    const char *cpus, *mems;          /* "0-3,7": processors, memory nodes; NULL: left alone; borrowed */
    const struct cg_hugetlb *hugetlb; /* sizes that are not listed are left alone; borrowed */
    size_t n_hugetlb;
};
#define CG_LIMITS_NONE                                                                                       \
    {                                                                                                        \
        .cpu_shares = -1, .cpu_quota_us = -1, .memory_max = -1, .memory_min = -1, .memory_low = -1,          \
        .pids_max = -1                                                                                       \
    }

enum cg_class { CG_GUARANTEED, CG_BURSTABLE, CG_BEST_EFFORT };

/* Path of the pod's cgroup relative to the cgroup mount, for OCI cgroupsPath:
 * "/<root>/kubepods/burstable/pod<uid>". */
enum err_code cg_pod_path(const struct cg_tree *t, enum cg_class class_, const char *uid, char *ret,
                          size_t size, struct err *e) MUST_CHECK;
/* Creates (or updates) the pod's cgroup. */
enum err_code cg_pod_apply(struct cg_tree *t, enum cg_class class_, const char *uid,
                           const struct cg_limits *l, struct err *e) MUST_CHECK;
/* <root>/kubepods itself: what all pods together may have. */
enum err_code cg_node_apply(struct cg_tree *t, const struct cg_limits *l, struct err *e) MUST_CHECK;
/* The cgroup of a class, not CG_GUARANTEED. */
enum err_code cg_qos_apply(struct cg_tree *t, enum cg_class class_, const struct cg_limits *l,
                           struct err *e) MUST_CHECK;
/*
 * Limits of a cgroup that is somebody else's, "/system.slice", and that exists: nothing is made or moved, and
 * what *l does not limit is left alone.  ERR_NOT_FOUND: it, or the controller of a limit, is not there;
 * ERR_PRECONDITION: the pods' own is in it.
 */
enum err_code cg_foreign_apply(struct cg_tree *t, const char *path, const struct cg_limits *l,
                               struct err *e) MUST_CHECK;

/*
 * New limits of cpu and memory for a container's cgroup (path as for cg_kill()), which exists; what *l does
 * not limit becomes unlimited, but for the number of processes.  memory_high: v2; 0: none; -1: left alone.
 * ERR_NOT_FOUND: it is gone.  The kernel's EBUSY (v1): more memory is in use than can be reclaimed.
 */
enum err_code cg_resize(struct cg_tree *t, const char *path, const struct cg_limits *l, int64_t memory_high,
                        struct err *e) MUST_CHECK;

/*
 * Kills every process at or below `path` (relative to the cgroup mount, as given by cg_pod_path() plus
 * "/<id>"): cgroup.kill on v2; else freeze, kill, thaw, until empty.  Returns at once after the signals.  A
 * cgroup that is not there is success; where something could not be read some may have been missed: an error.
 */
enum err_code cg_kill(struct cg_tree *t, const char *path, struct err *e) MUST_CHECK;
/* Any process at or below; absent also when there is no such cgroup. */
struct presence cg_look_processes(struct cg_tree *t, const char *path, struct err *e) MUST_CHECK;
/*
 * Says which processes at or below `path` sleep in the kernel where not even SIGKILL reaches them, and where:
 * "process 412 (cat) in request_wait_answer"; "" when there are none.  Reads /proc/<pid>/stat and wchan only,
 * which never block on such a process.
 */
void cg_stuck(struct cg_tree *t, const char *path, char *ret, size_t size);
/* Removes an empty subtree from all hierarchies; ERR_UNAVAILABLE while processes are left (kill first, try
 * again). */
enum err_code cg_remove(struct cg_tree *t, const char *path, struct err *e) MUST_CHECK;
/* uids (malloc'ed strings, NULL-terminated array) of all pod cgroups that exist, with their paths: for
 * clean-up after a restart. */
enum err_code cg_list_pods(struct cg_tree *t, char ***ret_paths, struct err *e) MUST_CHECK;
void cg_free_list(char **list);

/*
 * Leaves of our own.  The directory descriptor to spawn into: of ops wherever there is a v2 side, as being
 * found in one hierarchy is enough to be swept, and being born there is cheaper by far than being moved (the
 * kernel waits 10 to 30 ms for a move when none was made just before); of conmon on v2 alone, as it stands in
 * all hierarchies.  Else -1.  Borrowed.
 */
enum cg_leaf { CG_LEAF_OPS, CG_LEAF_CONMON };
int cg_leaf_fd(struct cg_tree *t, enum cg_leaf leaf);
/* Where there is no descriptor: cgroup.procs for a child to join (the hierarchy in which it can be killed
 * best: the v2 side, else freezer, else pids); else NULL.  Borrowed. */
const char *cg_leaf_procs(struct cg_tree *t, enum cg_leaf leaf);
/* Of a leaf in all hierarchies (conmon, but on v2): the cgroup.procs files that a child joins;
 * NULL-terminated, borrowed.  Else NULL. */
const char *const *cg_leaf_joins(struct cg_tree *t, enum cg_leaf leaf);
/* Makes a cgroup below a pod's (path as for cg_kill()) and moves a process into it, in all hierarchies. */
enum err_code cg_place(struct cg_tree *t, const char *path, pid_t pid, struct err *e) MUST_CHECK;
/* Kills what an earlier run of the agent left in the ops leaf and waits (bounded, 2 s) until it is empty.
 * ERR_UNAVAILABLE: some are stuck in the kernel; killed, they will run nothing any more. */
enum err_code cg_ops_sweep(struct cg_tree *t, struct err *e) MUST_CHECK;

/* ---- reading --------------------------------------------------------------------------------- */
/* Bytes in use; absent: no such cgroup, or nothing counts memory. */
struct presence cg_look_memory(struct cg_tree *t, const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
#endif
