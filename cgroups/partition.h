/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition - processors that the kernel's scheduler leaves to one cgroup: cpuset.cpus.partition "isolated"
 * of cgroup v2. No task of another cgroup runs on them, and tasks are not balanced between them.
 *
 * A cgroup below systemd's slices can only be a remote partition (Linux 6.7; admin-guide/cgroup-v2.rst,
 * "Cpuset Interface Files"): its processors must be in cpuset.cpus.exclusive of itself and of each cgroup
 * above it, from the first one below the root. These files take nothing from any task until there is a
 * partition. Their order and values are the caller's (agent/placement/isolate.h); here are single files.
 *
 * Lists of processors are the kernel's, "0-3,7"; "" is none. Loop thread; a partition made or ended takes the
 * kernel some milliseconds.
 */
#ifndef CGROUPS_PARTITION_H
#define CGROUPS_PARTITION_H
#include "cgroups/cgroup.h"

/* Whether a container's cgroup can be a partition. False: *ret_why is a sentence without its end,
 * static; otherwise NULL. */
bool cg_partition_possible(const struct cg_tree *t, const char **ret_why);

/* The cgroup of all pods, "<root>/kubepods". */
enum err_code cg_all_pods_path(const struct cg_tree *t, char *ret, size_t size, struct err *e) MUST_CHECK;
/* Adds the cgroups above it, from the top, without the root, and without those at or above a cgroup that
 * another program has made a partition; that program manages its processors. */
enum err_code cg_above_pods(const struct cg_tree *t, struct strs *ret, struct err *e) MUST_CHECK;
/* Adds the paths of the cgroups directly in this one; none if it does not exist. */
enum err_code cg_list_in(const struct cg_tree *t, const char *path, struct strs *ret,
                         struct err *e) MUST_CHECK;

/* cpuset.cpus.exclusive of a cgroup: *ret is the caller's. ERR_NOT_FOUND: it no longer exists. */
enum err_code cg_exclusive_read(const struct cg_tree *t, const char *path, char **ret,
                                struct err *e) MUST_CHECK;
/* Only of pods' cgroups, and of those that cg_above_pods() names. The kernel's EINVAL: another cgroup has one
 * of these processors in its own file. */
enum err_code cg_exclusive_write(const struct cg_tree *t, const char *path, const char *cpus,
                                 struct err *e) MUST_CHECK;

enum cg_partition {
    CG_PARTITION_MEMBER, /* none */
    CG_PARTITION_ISOLATED,
    CG_PARTITION_INVALID, /* it was requested, but the kernel does not grant it at present */
    CG_PARTITION_ROOT,    /* not isolated: not ours */
};
#define CG_PARTITION_WHY 160
/* `why` gets the kernel's reason if it is invalid; otherwise "". */
enum err_code cg_partition_read(const struct cg_tree *t, const char *path, enum cg_partition *ret,
                                char why[CG_PARTITION_WHY], struct err *e) MUST_CHECK;
/* Makes a container's cgroup an isolated partition, or none. Success is not yet a valid one: read it. */
enum err_code cg_partition_write(const struct cg_tree *t, const char *path, bool isolated,
                                 struct err *e) MUST_CHECK;
/* The text of cpuset.cpus.partition, for cg_partition_read() and its test: hostile or damaged text is "none".
 */
enum cg_partition cg_partition_parse(const char *text, char why[CG_PARTITION_WHY]);
#endif
