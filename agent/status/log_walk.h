/* SPDX-License-Identifier: Apache-2.0 */
/* log_walk - reads the log of one run from its oldest kept file to the current one as if it were one file,
 * while it is being rotated. If the next file has been removed, continues with the oldest newer one.
 * Blocking: on the worker pool. */
#ifndef AGENT_STATUS_LOG_WALK_H
#define AGENT_STATUS_LOG_WALK_H
#include "agent/status/log_files.h"

#include <stddef.h>

struct log_walk {
    char path[PATH_MAX]; /* of the current file */
    int fd;              /* the file being read; -1: none yet */
    uint64_t offset;
};

/* A log that does not exist (yet) is empty. */
void log_walk_init(struct log_walk *w, const char *path);
void log_walk_done(struct log_walk *w);
/* Seeks to the last `tail_lines` lines (UINT64_MAX: everything); skips files not written since `since_ns`.
 * ERR_INVALID: not a regular file. */
enum err_code log_walk_seek(struct log_walk *w, uint64_t tail_lines, int64_t since_ns,
                            struct err *e) MUST_CHECK;
/* The next bytes, from one file; *ret 0: no more so far. */
enum err_code log_walk_read(struct log_walk *w, void *bytes, size_t n, size_t *ret, struct err *e) MUST_CHECK;
#endif
