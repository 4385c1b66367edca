/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look - scans for the nodes of this machine that match a set of declarations. It runs in a forked call,
 * because a path may lead anywhere; the result is passed as JSON.
 *
 * An error is not absence: the result lists the members (decl.h) that could not be scanned, and their earlier
 * matches still apply.
 */
#ifndef AGENT_DECLARED_LOOK_H
#define AGENT_DECLARED_LOOK_H
#include "agent/declared/decl.h"
#include "base/buf.h"

#include <stdint.h>

#define LOOK_MATCHES_MAX 4096           /* of one member */
#define LOOK_INSIDE_MAX 256             /* nodes below one folder */
#define LOOK_WATCH_MAX 256              /* folders that are watched */
#define LOOK_NAMES_MAX 256              /* patterns of names in one of them */
#define LOOK_OUT_MAX (32 * 1024 * 1024) /* bytes of an answer */
#define LOOK_DEADLINE_MS 10000

struct look_job {
    const struct decl_resource *const *v;
    size_t n;
    const char *sys_dir, *dev_dir; /* "/sys", "/dev" */
};

struct look_match {
    const char *path;          /* path on the host, as matched: a symlink is not resolved */
    const char *id;            /* the match's part of the device's id: printable, without ',' and '#' */
    const char *node;          /* "c4:64"; NULL: a folder, or DECL_MOUNT */
    int64_t numa;              /* -1: unknown */
    const char *const *inside; /* a folder: its nodes, relative to it */
    size_t n_inside;
};

struct look_member {
    const char *unknown;        /* why it could not be scanned; NULL: v is complete */
    const struct look_match *v; /* sorted by path or id */
    size_t n;
    const char *const *problems; /* problems of single matches, for display */
    size_t n_problems;
};

struct look_watch { /* a folder in which a change may matter */
    const char *dir;
    const char *const *names; /* patterns of the names that matter */
    size_t n_names;
};

struct look {
    struct arena arena;
    struct look_member *members; /* of all resources' groups, in order */
    size_t n_members;
    struct look_watch *watch;
    size_t n_watch;
};

size_t look_count(const struct look_job *j); /* members */
/* A proc_call_fn; `job` is a struct look_job. */
enum err_code look_run(const void *job, struct buf *out, struct err *e) MUST_CHECK;
/* Decodes the result of a job with `n_members`. */
enum err_code look_read(const char *text, size_t n, size_t n_members, struct look *ret,
                        struct err *e) MUST_CHECK;
void look_done(struct look *l);
#endif
