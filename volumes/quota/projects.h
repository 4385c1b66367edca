/* SPDX-License-Identifier: Apache-2.0 */
/*
 * projects - the ids of projects: which tree of which pod has which id. The table is kept in
 * <state>/projects.json and is written before an id is used; /etc/projects and /etc/projid name the same ids
 * for xfs_quota, repquota and other software, and are kept in kubelet's manner (lines of others stay, both
 * files are locked with flock(2), a new file replaces the old one).
 *
 * An id is never shared: it is free only if it is in no table, in neither file, has no usage and no limits on
 * any of our file systems, and is not the project of a tree of others. The first is QUOTA_FIRST_ID. An id
 * returns to the free ones when its tree is gone and its usage is 0.
 *
 * Killed at any instruction: an id in the table without a tree is freed at the next start, a tree whose id is
 * not in the table cannot exist, because the table was on the disk before.
 *
 * Not thread-safe: one thread at a time (the pool, one operation after the other).
 */
#ifndef VOLUMES_QUOTA_PROJECTS_H
#define VOLUMES_QUOTA_PROJECTS_H
#include "volumes/quota/quota.h"

#define QUOTA_FIRST_ID 1048577u /* kubelet's: 1 << 20, plus 1 */

struct projects;

struct projects_options { /* borrowed while it exists */
    const char *state_file;
    const char *projects_file, *projid_file; /* "/etc/projects", "/etc/projid"; "": not kept */
};

/* The table as it was left. A damaged one is set aside and begun anew from /etc and the folders' own ids. */
enum err_code projects_open(struct projects **ret, const struct projects_options *o,
                            struct err *e) MUST_CHECK;
void projects_close(struct projects *p); /* NULL is fine */

struct project {
    uint32_t id;
    char owner[140]; /* uid of the pod */
    char *path;      /* absolute */
    dev_t device;
};

/* The id of a tree, a new one if it has none. On return it is on the disk. */
enum err_code projects_take(struct projects *p, const struct quota_fs *f, const char *owner, const char *path,
                            uint32_t *ret, struct err *e) MUST_CHECK;
/* Several at once, of one pod as a rule: each file is written once, because a pod's start waits for this. All
 * or none get an id; an existing one is kept. */
struct projects_wish {
    const struct quota_fs *fs;
    const char *owner, *path;
    uint32_t id; /* the result */
};
enum err_code projects_take_all(struct projects *p, struct projects_wish *w, size_t n,
                                struct err *e) MUST_CHECK;
/* The tree is gone: its limits are removed; the id is free once nothing uses it any more (removed files that
 * are still open). Absent is success. */
enum err_code projects_release(struct projects *p, const struct quota_fs *f, const char *path,
                               struct err *e) MUST_CHECK;
/* Likewise; ids are not read. One that fails does not keep the others; the first error is returned. */
enum err_code projects_release_all(struct projects *p, const struct projects_wish *w, size_t n,
                                   struct err *e) MUST_CHECK;
const struct project *projects_find(const struct projects *p, const char *path); /* NULL: none */
const struct project *projects_by_id(const struct projects *p, dev_t device, uint32_t id);
void projects_each(const struct projects *p, void (*fn)(const struct project *x, void *arg), void *arg);
#endif
