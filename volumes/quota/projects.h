/* SPDX-License-Identifier: Apache-2.0 */
/*
 * projects - the ids of projects: which tree of which pod has which id. The table is kept in
 * <state>/projects.json and is on the disk before an id is used. /etc/projects and /etc/projid name the same
 * ids for xfs_quota, repquota and other software:
 *
 *     /etc/projects   1048577:/var/lib/kubelet/pods/<uid>/volumes/...     while the tree exists
 *     /etc/projid     coracle1048577:1048577                              as long as the id is not free
 *
 * They are kept in kubelet's manner: both are locked with flock(2), projects first; a new file replaces the
 * old one, projid first; all lines of others stay. A symlink in the place of one is refused.
 *
 * An id is never shared: it is free only if it is not in the table, in neither file, and has no usage and no
 * limits on the tree's file system (a tree of others has at least the inode of its folder). The first is
 * QUOTA_FIRST_ID. An id whose usage could not be read is not free. An id returns when its tree is gone and
 * its usage is 0.
 *
 * The order of a start:   projects_take_all(), quota_assign() on the empty folder, quota_set().
 * The order of an end:    the tree is removed, projects_release_all().
 * Killed at any instruction: an id in the table without a tree is freed by projects_sweep() at the next
 * start; a tree whose id is not in the table cannot exist, because the table was on the disk before.
 *
 * Not thread-safe: one thread at a time (the pool, one operation after the other). Blocking: syncs three
 * files, and waits up to two seconds for the locks.
 */
#ifndef VOLUMES_QUOTA_PROJECTS_H
#define VOLUMES_QUOTA_PROJECTS_H
#include "volumes/quota/quota.h"

#define QUOTA_FIRST_ID 1048577u /* kubelet's: 1 << 20, plus 1 */
#define PROJECTS_MAX 65536      /* trees in the table */

struct projects;

struct projects_options { /* copied */
    const char *state_file;
    const char *projects_file, *projid_file; /* "/etc/projects", "/etc/projid"; "": not kept */
};

/*
 * The table as it was left. A damaged one is set aside (base/files/damaged_file.h, logged) and begun anew
 * from the lines of /etc that name our ids; without them, trees get new ids, and the old ones stay unused as
 * long as something has them. Files that cannot be read are an error and change nothing.
 */
enum err_code projects_open(struct projects **ret, const struct projects_options *o,
                            struct err *e) MUST_CHECK;
void projects_close(struct projects *p); /* NULL is fine */
SCOPE_DEFINE(struct projects, projects_close)

struct project {
    uint32_t id;
    char owner[140]; /* uid of the pod; "" for one from a damaged table, until it is taken again */
    char *path;      /* absolute; NULL: released, something still uses it */
    char fs[64];     /* quota_fs_identity(); "": not known yet */
    dev_t device;    /* 0: not seen since projects_open() */
};

/*
 * The ids of trees, new ones for those that have none; all or none. On return the table is on the disk. A
 * path on another file system than before gets a new id. One call for all trees of a pod writes each file
 * once. ERR_UNAVAILABLE: other software held the locks. ERR_EXHAUSTED: no id was free, or PROJECTS_MAX.
 */
struct projects_wish {
    const struct quota_fs *fs;
    const char *owner, *path; /* path: absolute, without control characters */
    uint32_t id;              /* the result */
};
enum err_code projects_take_all(struct projects *p, struct projects_wish *w, size_t n,
                                struct err *e) MUST_CHECK;
enum err_code projects_take(struct projects *p, const struct quota_fs *f, const char *owner, const char *path,
                            uint32_t *ret, struct err *e) MUST_CHECK;

/*
 * Ids for future trees, so that a start does not wait for the disk: on return they are on the disk, in the
 * table and in projid, without a tree. All or none. projects_name_all() says which trees got them,
 * afterwards; `id` of each wish is such an id. Killed in between, a tree has an id that the table calls
 * released: it stays so until nothing uses it. Unused reserved ids are freed by projects_sweep() of the next
 * start, or by projects_unreserve().
 */
enum err_code projects_reserve(struct projects *p, const struct quota_fs *f, uint32_t *ret_ids, size_t n,
                               struct err *e) MUST_CHECK;
enum err_code projects_name_all(struct projects *p, const struct projects_wish *w, size_t n,
                                struct err *e) MUST_CHECK;
/* None of them will be used. */
void projects_unreserve(struct projects *p);

/* The trees are gone: limits are removed, and ids that nothing uses are free. An id whose removed files are
 * still open stays until projects_sweep() finds it unused. Absent is success; owners and ids are not read.
 * One that fails does not keep the others; the first error is returned, and projects_sweep() tries again. */
enum err_code projects_release_all(struct projects *p, const struct projects_wish *w, size_t n,
                                   struct err *e) MUST_CHECK;
enum err_code projects_release(struct projects *p, const struct quota_fs *f, const char *path,
                               struct err *e) MUST_CHECK;

/*
 * Frees the ids on this file system that were left: released ones whose usage has become 0, and those that an
 * earlier agent took for a tree that does not exist (paths taken since projects_open() are not checked). Call
 * it at the start after the pods' folders were cleaned up, and later while *ret_waiting is above 0: ids that
 * are released and in use.
 */
enum err_code projects_sweep(struct projects *p, const struct quota_fs *f, size_t *ret_waiting,
                             struct err *e) MUST_CHECK;

/* Valid until the next call that changes the table. Released ones are not found. */
const struct project *projects_find(const struct projects *p, const char *path); /* NULL: none */
/* Also finds released ones, and those whose device is not known yet. */
const struct project *projects_by_id(const struct projects *p, dev_t device, uint32_t id);
void projects_each(const struct projects *p, void (*fn)(const struct project *x, void *arg), void *arg);
#endif
