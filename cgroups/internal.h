/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups, private: a struct for each mounted hierarchy, and the function table that hides whether it is v1
 * or v2. A v2 host has one hierarchy, a v1 host one per controller, a hybrid both kinds; every operation of
 * cgroup.h is a loop over the hierarchies, so only hybrid.c has code for hybrids.
 *
 * Paths: `path` is absolute below the mount point ("/kubepods/burstable/pod1") and opened relative to the
 * hierarchy's descriptor, so a test can use a scratch directory as the cgroup file system.
 */
#ifndef CGROUPS_INTERNAL_H
#define CGROUPS_INTERNAL_H
#include "cgroups/cgroup.h"
#include "cgroups/meter.h"

#include <stddef.h>

#define CG_MOUNTS "/sys/fs/cgroup" /* where OCI runtimes search */
#define CG_HIERS_MAX 24            /* the kernel has about 15 controllers, plus named hierarchies */
#define CG_NAME_MAX 128            /* the names of all controllers are about 90 characters */
#define CG_PATH_MAX 1024
#define CG_DEPTH_MAX 64 /* levels below a pod that are visited on v1; nested engines use about ten */

enum cg_controller { /* bits */
                     CG_CTL_CPU = 1 << 0,
                     CG_CTL_CPUACCT = 1 << 1,
                     CG_CTL_CPUSET = 1 << 2,
                     CG_CTL_MEMORY = 1 << 3,
                     CG_CTL_PIDS = 1 << 4,
                     CG_CTL_FREEZER = 1 << 5,
                     CG_CTL_HUGETLB = 1 << 6,
                     CG_CTL_IO = 1 << 7, /* blkio on v1 */
};
/* Without these, pod limits cannot be enforced. */
#define CG_REQUIRED (CG_CTL_CPU | CG_CTL_MEMORY | CG_CTL_PIDS)

unsigned
cg_controllers_parse(const char *list); /* names separated by blanks or commas; unknown ones are ignored */
/* "cpu memory"; with prefix '+': "+cpu +memory". */
void cg_controllers_format(unsigned controllers, char prefix, char *ret, size_t size);

/* ---- discover.c: finds the mounted hierarchies ---- */
struct cg_found_hier {
    bool v2;
    unsigned controllers;   /* v1 only; for v2 see its cgroup.controllers */
    char name[CG_NAME_MAX]; /* as in /proc/self/cgroup: "memory", "cpu,cpuacct", "name=systemd"; "unified" */
    char point[256];        /* where it is mounted */
    char own[CG_PATH_MAX];  /* the caller's cgroup in it */
};

struct cg_found {
    enum cg_layout layout;
    struct cg_found_hier hiers[CG_HIERS_MAX];
    size_t n;
    /* v1 hierarchies whose controllers exist but are not mounted below CG_MOUNTS */
    char unmounted[CG_HIERS_MAX][CG_NAME_MAX];
    size_t n_unmounted;
};

/* ERR_PRECONDITION: no cgroup file system. ERR_INVALID: not a kernel's text. */
enum err_code cg_discover(struct cg_found *ret, const char *mountinfo, const char *proc_cgroup,
                          struct err *e) MUST_CHECK;

/* ---- hierarchies ---- */
struct cg_hier {
    const struct cg_backend *backend;
    unsigned controllers; /* v2: those available in <root> */
    char name[CG_NAME_MAX];
    char *point;
    int fd;               /* the mount point */
    size_t root_existing; /* length of the part of <root> that existed before */
};

struct cg_backend {
    bool v2;
    /* Called when <root> exists and before anything below it: finds and delegates the controllers. */
    enum err_code (*prepare_root)(struct cg_hier *h, const char *root, struct err *e);
    /* Prepares `dir` (a cgroup below `parent`) for children: v1 cpuset inheritance, v2 subtree_control. */
    enum err_code (*prepare)(const struct cg_hier *h, int dir, int parent, struct err *e);
    /* Writes the limits of this hierarchy's controllers. `fresh`: newly created, so "no limit" needs no
     * write. */
    enum err_code (*limit)(const struct cg_hier *h, int dir, const struct cg_limits *l, bool fresh,
                           struct err *e);
    bool (*kill)(int dir); /* cgroup.kill; false if the kernel does not have it */
    /* Freezes one cgroup, asynchronously; no effect without a freezer. */
    void (*freeze)(int dir, bool on);
    bool (*frozen)(int dir); /* false also if unknown: the caller repeats the call */
    struct presence (*populated)(int dir, struct err *e); /* whether there is any process at or below dir */
};
extern const struct cg_backend cg_backend_v1;
extern const struct cg_backend cg_backend_v2;

struct cg_tree {
    enum cg_layout layout;
    struct cg_hier hiers[CG_HIERS_MAX]; /* v2 first, then freezer: in order of suitability for killing */
    size_t n_hiers;
    char root[CG_PATH_MAX / 2]; /* "" for "/", otherwise without a trailing "/": a prefix for paths */
    char *scratch_dir;
    char pinned[CG_HIERS_MAX][CG_NAME_MAX]; /* held as v1 */
    int pinned_fd[CG_HIERS_MAX];            /* descriptors of the detached mounts */
    size_t n_pinned;
    int lock_fd; /* -1: none */
    int leaf_fd[2];
    char *leaf_procs[2];
    struct strs leaf_joins[2];
};

/* The environment of cg_open(); tests pass their own. */
struct cg_env {
    const char *mountinfo, *proc_cgroup;
    int root_fd;       /* "/" */
    bool alone;        /* check for pods of other software and for another agent */
    unsigned required; /* CG_REQUIRED */
};
enum err_code cg_open_env(struct cg_tree **ret, const struct cg_options *o, const struct cg_env *env,
                          struct err *e) MUST_CHECK;

/* ---- hybrid.c ---- */
enum err_code cg_pin_controllers(struct cg_tree *t, const struct cg_found *found, struct err *e) MUST_CHECK;
void cg_unpin_controllers(struct cg_tree *t);

/* ---- tree.c ---- */
/* `path` is root + sub, or below it. */
bool cg_is_at_or_below(const char *path, const char *root, const char *sub);
bool cg_path_is_ours(const struct cg_tree *t,
                     const char *path); /* at or below <root>/kubepods or <root>/coracle */
int cg_open_dir(const struct cg_hier *h, const char *path); /* -1 with errno; O_DIRECTORY, readable */
/* Creates <root><sub> in one hierarchy, and prepares new levels and, if `inner`, the last one. The descriptor
 * may be NULL. */
enum err_code cg_make(const struct cg_tree *t, struct cg_hier *h, const char *sub, bool inner,
                      bool *ret_fresh, int *ret_dir, struct err *e) MUST_CHECK;
enum err_code cg_make_root(const struct cg_tree *t, struct cg_hier *h, struct err *e) MUST_CHECK;
/* The controllers of a v2 cgroup. */
enum err_code cg_controllers_of(int dir, unsigned *ret, struct err *e) MUST_CHECK;
enum err_code cg_remove_below(const struct cg_hier *h, const char *path, struct err *e) MUST_CHECK;

/* ---- leaf.c ---- */
enum err_code cg_open_leaves(struct cg_tree *t, struct err *e) MUST_CHECK;
void cg_close_leaves(struct cg_tree *t);

/* ---- kill.c ---- */
void cg_kill_below(struct cg_tree *t, const char *path); /* cg_kill() without its check */
/*
 * Like cg_kill_below(), but with signals only, for a cgroup that will be reused: on Linux 6.18, a process
 * created with CLONE_INTO_CGROUP in a cgroup that was killed before dies immediately, because the kernel
 * compares its kill count with the parent's.
 */
void cg_kill_members(struct cg_tree *t, const char *path);
struct presence cg_procs_left(struct cg_tree *t, const char *path, struct err *e) MUST_CHECK;
/* False also if unknown at the end. */
bool cg_wait_empty(struct cg_tree *t, const char *path, unsigned timeout_ms);
/* Calls fn for each process at or below a cgroup until it returns false; then returns false. *e: the first
 * reason why some may have been missed. */
bool cg_each_pid(int dir, bool (*fn)(pid_t pid, void *arg), void *arg, struct err *e);
/* v1: reads cgroup.procs at and below. */
struct presence cg_any_process(int dir, struct err *e) MUST_CHECK;

/* ---- usage.c: numbers in files; absent: no such file or key, or no number there ---- */
struct presence cg_read_u64(int dir, const char *file, uint64_t *ret, struct err *e) MUST_CHECK;
struct presence cg_read_key(int dir, const char *file, const char *key, uint64_t *ret,
                            struct err *e) MUST_CHECK;
/* Whether a counter of events grew since the last call, which left it in *counted. A counter that cannot be
 * read counts as grown: a superfluous report is better than a missing one. */
bool cg_count_grew(int dir, const char *file, const char *key, uint64_t *counted);

/* sample.c: parses files into a sample. Missing keys and truncated or invalid lines leave their member
 * alone. */
bool cg_take_u64(const char *text, size_t n, uint64_t *ret);
bool cg_take_limit(const char *text, size_t n, uint64_t *ret); /* "max", "-1": CG_NO_LIMIT */
void cg_take_cpu_stat(const char *text, size_t n, struct cg_sample *ret);
void cg_take_memory_stat(const char *text, size_t n, struct cg_sample *ret);
void cg_take_memory_stat_v1(const char *text, size_t n, struct cg_sample *ret);
void cg_take_oom_kills(const char *text, size_t n, struct cg_sample *ret);
void cg_take_io_stat(const char *text, size_t n, struct cg_sample *ret);
void cg_take_blkio(const char *text, size_t n, uint64_t *ret_read, uint64_t *ret_write);
void cg_take_pressure(const char *text, size_t n, struct cg_psi *ret);
uint64_t cg_count_lines(const char *text, size_t n);

/* ---- limit.c: files that are equal on v1 and v2, except for the end of hugetlb's names ---- */
enum err_code cg_cpuset_limit(int dir, const struct cg_limits *l, struct err *e) MUST_CHECK;
/* Writes a quota of processor time unless the file has it already: the kernel visits every cgroup of the
 * machine for each write, so a restart beside 1,000 pods would otherwise cost a million visits. */
enum err_code cg_quota(int dir, const char *file, const char *text, struct err *e) MUST_CHECK;
enum err_code cg_hugetlb_limit(int dir, const struct cg_limits *l, const char *last,
                               struct err *e) MUST_CHECK;
#endif
