/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_files - the log files of one run of a container, in its log folder:
 *
 *     3.log.20260102-030405          rotated, named like kubelet's by the time (UTC) at which it was full;
 *     3.log.20260102-030405.000001   another one in the same second
 *     3.log                          the current one
 *     3.log.tmp                      the next one, empty: conmon renames it to 3.log
 *     .3.log.kept, .3.log.next       second names of the previous two, because conmon removes the
 *                                    first names when it rotates while no agent runs
 *
 * agent/pod/container/log_keep.h creates them. Blocking; any thread.
 */
#ifndef AGENT_STATUS_LOG_FILES_H
#define AGENT_STATUS_LOG_FILES_H
#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define LOG_FILES_MAX 10000 /* per run; further files are ignored */
#define LOG_NAME_SIZE (NAME_MAX + 1)

struct log_file {
    char name[LOG_NAME_SIZE];
    dev_t dev;
    ino_t ino;
    uint64_t size;
    int64_t mtime_ns;
};

struct log_files {
    struct log_file *v; /* oldest first; no file twice, whatever its names */
    size_t n;
};

/* The files with readable content, the last one "3.log" if it exists; `base`: "3.log". Repeated until two
 * listings agree, so that a concurrent rotation hides none. Always call log_files_done(). */
enum err_code log_files_list(int dirfd, const char *base, struct log_files *ret, struct err *e) MUST_CHECK;
/* Only the files with a rotated name, even if it is a second name of the current file; newest last. */
enum err_code log_files_rotated(int dirfd, const char *base, struct log_files *ret, struct err *e) MUST_CHECK;
void log_files_done(struct log_files *f);

/* "<base>.<date>-<time>" or "<base>.<date>-<time>.<count>". */
bool log_file_is_rotated(const char *name, const char *base);
/* The name for a file that was full at that time: sorts after `newest` (or NULL), even if the clock was set
 * back. */
void log_file_rotated_name(const char *base, int64_t wall_ns, const char *newest, char ret[LOG_NAME_SIZE]);
enum log_role { LOG_CURRENT, LOG_TMP, LOG_KEPT, LOG_NEXT };
void log_file_name(enum log_role role, const char *base, char ret[LOG_NAME_SIZE]);

/* Removes 3.log, 3.log.*, .3.log.*; best effort. */
void log_files_remove(int dirfd, const char *base);
#endif
