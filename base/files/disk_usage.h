/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_usage - the disk space used by a tree, counted like `du -x`: in blocks of 512 bytes, sparse files by
 * their allocated blocks, files with several hard links once, folders included; it never crosses a mount
 * point or follows a symlink. Deleted files that are still open are not seen.
 *
 * The tree may change during the scan and may be hostile. The scan therefore works with descriptors, cannot
 * be led out of the tree by a folder that moves, and limits the memory and descriptors used for deep or large
 * trees (what exceeds a limit is left out and `partial` is set).
 *
 * A scan runs in slices of CPU time, with pauses of any length between them, and holds two descriptors.
 * Blocking: call it on the pool.
 */
#ifndef BASE_FILES_DISK_USAGE_H
#define BASE_FILES_DISK_USAGE_H
#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>

struct disk_usage_sum {
    uint64_t bytes, inodes;
    bool partial; /* incomplete: something could not be read or exceeded a limit */
};

struct disk_usage; /* a scan in progress */

/* `path` itself must not be a symlink. ERR_NOT_FOUND if it does not exist. */
enum err_code disk_usage_begin(struct disk_usage **ret, const char *path, struct err *e) MUST_CHECK;
/* Continues for about that much CPU time of this thread. Returns true when the scan is complete. */
bool disk_usage_go_on(struct disk_usage *u, uint64_t cpu_ns);
/* The result so far. */
struct disk_usage_sum disk_usage_sum(const struct disk_usage *u);
void disk_usage_free(struct disk_usage *u); /* NULL is fine */
SCOPE_DEFINE(struct disk_usage, disk_usage_free)

/* For tests: smaller limits for the bytes of folder names and for remembered inodes with several links. */
void disk_usage_set_bounds(struct disk_usage *u, size_t names_max, size_t links_max);
#endif
