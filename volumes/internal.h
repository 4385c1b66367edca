/* SPDX-License-Identifier: Apache-2.0 */
/* volumes, private. */
#ifndef VOLUMES_INTERNAL_H
#define VOLUMES_INTERNAL_H
#include "base/presence.h"
#include "volumes/atomic_writer.h"
#include "volumes/volumes.h"

#include <stddef.h>

#define VOL_PATH_MAX 4096

struct vol_node {
    char *tmpfs, *pods; /* canonical paths, as in mountinfo */
    int tmpfs_fd, pods_fd;
};

/* Checks a uid, volume or container name: one harmless path element that does not start with a dot. */
enum err_code vol_check_name(const char *what, const char *name, struct err *e) MUST_CHECK;

/* "<dir>/<a>[/<b>]" with snprintf's limits as an error. */
enum err_code vol_join(char *ret, size_t size, struct err *e, const char *fmt, ...)
    PRINTF_LIKE(4, 5) MUST_CHECK;

/* ---- tmpfs.c ---- */
struct vol_tmpfs {
    uint64_t size_bytes; /* 0: the kernel's default, half of the memory */
    unsigned mode;       /* of its root, set atomically with the mount */
    int64_t gid;         /* -1: root's */
    unsigned long flags; /* MS_NOSUID ... */
    bool may_swap;       /* otherwise kept out of swap */
};
/* Mounts a tmpfs, without swap unless it may_swap, if the kernel can (6.4); *ret_noswap may be NULL. */
enum err_code vol_tmpfs_mount(const char *path, const struct vol_tmpfs *t, bool *ret_noswap,
                              struct err *e) MUST_CHECK;
/* Whether the topmost mount at `path` (canonical) is this kind of file system. */
struct presence vol_is_mounted(const char *path, const char *fstype, bool *ret_noswap /* may be NULL */,
                               struct err *e) MUST_CHECK;
bool vol_swap_is_on(void);

/* ---- payload.c: the content of a volume, sorted and checked ---- */
struct vol_entry {
    const struct vol_file *file;
    char *path;       /* normalised: no empty or "." elements */
    size_t seq;       /* position in the input: later ones win */
    bool link_wanted; /* first of its top element, whose link does not exist yet */
};

struct vol_plan {
    struct vol_entry *v; /* by path, each path once */
    size_t n;
    size_t n_dirs; /* folders needed by the paths */
};

enum err_code vol_plan_make(struct vol_plan *ret, const struct vol_file *files, size_t n,
                            struct err *e) MUST_CHECK;
void vol_plan_done(struct vol_plan *p);
/* Calls fn for each folder that entry `i` needs and earlier entries do not, outer ones first; stops at
 * non-zero. */
int vol_plan_each_new_dir(const struct vol_plan *p, size_t i, int (*fn)(const char *dir, void *arg),
                          void *arg);
/* First path element of entry `i`, in *ret; false if entry i - 1 has the same. */
bool vol_plan_top(const struct vol_plan *p, size_t i, char ret[256]);
bool vol_plan_has_top(const struct vol_plan *p, const char *name);

/* ---- size.c ---- */
/* Entries below dir, up to `limit`, which is also the answer when they cannot be counted; a payload's depth
 * is bounded by the length of its paths. */
size_t vol_count_entries(int dir, size_t limit);

/* ---- generations.c: the folders "..2026_03_01_10_00_00.4711" of a volume ---- */
/* Superseded generations kept for their readers: at most this number, and at most this size in total, except
 * for one. */
#define VOL_KEEP_BYTES (16u * 1024 * 1024)
#define VOL_KEEP_MAX 256

struct vol_generation {
    char name[64];
    int64_t made_ns; /* wall clock; newest entry at the folder's top */
    bool is_current, remove;
};

struct vol_generations {
    uint64_t keep_ms; /* how long after it was superseded */
    size_t keep_max;  /* how many of the newest */
    struct vol_generation *v;
    size_t n;
};

void vol_generation_name(char ret[64]); /* a new name */
bool vol_generation_is(const char *name);
/* Failed: they are not known whole, and none may go. */
enum err_code vol_generations_add(struct vol_generations *g, int volume_fd, const char *name, bool is_current,
                                  struct err *e) MUST_CHECK;
/* Decides which may be removed; returns the number kept besides the current one. */
size_t vol_generations_sort_out(struct vol_generations *g);
void vol_generations_done(struct vol_generations *g);

/* ---- atomic_writer.c ---- */
struct vol_writer {
    int fd;
    char *target; /* for messages */
    uint64_t keep_ms;
    bool kept;
};
#endif
