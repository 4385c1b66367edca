/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_usage - how much of its file system a tree takes, as `du -x` counts it: blocks of 512 bytes, a sparse
 * file with those that it has, a file with several hard links once, folders as well; never across a mount
 * point, nor along a symlink.  A file that was removed and is still open somewhere is not seen.
 *
 * The tree belongs to somebody else, who changes it meanwhile and may mean ill: every step goes by
 * descriptor, a folder that is moved away leads nobody out of the tree, and neither depth nor number of
 * entries costs descriptors or memory without bound (what is beyond a bound is left out: `partial`).
 *
 * A scan goes on slice by slice, each by processor time, and may rest as long as one likes between them; it
 * holds two descriptors.  Blocking: on the pool.
 */
#ifndef BASE_DISK_USAGE_H
#define BASE_DISK_USAGE_H
#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>

struct disk_usage_sum {
    uint64_t bytes, inodes;
    bool partial; /* there is more: something could not be read, or was beyond a bound */
};

struct disk_usage; /* a scan under way */

/* `path` itself may not be a symlink.  ERR_NOT_FOUND: it is not there. */
enum err_code disk_usage_begin(struct disk_usage **ret, const char *path, struct err *e) MUST_CHECK;
/* Goes on for about so much of this thread's processor time.  True: it is over. */
bool disk_usage_go_on(struct disk_usage *u, uint64_t cpu_ns);
/* What was counted so far. */
struct disk_usage_sum disk_usage_sum(const struct disk_usage *u);
void disk_usage_free(struct disk_usage *u); /* NULL is fine */
SCOPE_DEFINE(struct disk_usage, disk_usage_free)

/* Bounds, in tests smaller ones: bytes of folders' names, inodes with several links that are remembered. */
void disk_usage_set_bounds(struct disk_usage *u, size_t names_max, size_t links_max);
#endif
