/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_files - the files of the log of one run of a container, in its log folder:
 *
 *     3.log.20260102-030405          rotated, by the time (UTC) at which it was full, as kubelet names them;
 *     3.log.20260102-030405.000001   a further one in the same second
 *     3.log                          the one that is being written
 *     3.log.tmp                      the next one, empty: conmon renames it to 3.log
 *     .3.log.kept, .3.log.next       second names of the two before: what conmon does on its own, while no
 *                                    agent runs, takes their first ones away
 *
 * Who makes them: agent/pod/container/log_keep.h.  Blocking; any thread.
 */
#ifndef AGENT_STATUS_LOG_FILES_H
#define AGENT_STATUS_LOG_FILES_H
#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define LOG_FILES_MAX 10000 /* of one run: more are passed over */
#define LOG_NAME_SIZE (NAME_MAX + 1)

struct log_file {
    char name[LOG_NAME_SIZE];
    dev_t dev;
    ino_t ino;
    uint64_t size;
    int64_t mtime_ns;
};

struct log_files {
    struct log_file *v; /* the oldest first; no file twice, whatever it is called */
    size_t n;
};

/* The files with content that can be read, "3.log" the last if it is there; `base`: "3.log".  Looked at until
 * twice the same is seen, so that a rotation meanwhile hides none.  log_files_done() in any case. */
enum err_code log_files_list(int dirfd, const char *base, struct log_files *ret, struct err *e) MUST_CHECK;
/* Those with a rotated name only, be it a second one of the file that is being written; the newest the last.
 */
enum err_code log_files_rotated(int dirfd, const char *base, struct log_files *ret, struct err *e) MUST_CHECK;
void log_files_done(struct log_files *f);

/* "<base>.<date>-<time>" or "<base>.<date>-<time>.<count>". */
bool log_file_is_rotated(const char *name, const char *base);
/* The name for one that was full at that time: sorts behind `newest` (NULL: there is none), whatever the
 * clock says. */
void log_file_rotated_name(const char *base, int64_t wall_ns, const char *newest, char ret[LOG_NAME_SIZE]);
enum log_role { LOG_CURRENT, LOG_TMP, LOG_KEPT, LOG_NEXT };
void log_file_name(enum log_role role, const char *base, char ret[LOG_NAME_SIZE]);

/* Removes what is called so: 3.log, 3.log.*, .3.log.*; what cannot be removed stays. */
void log_files_remove(int dirfd, const char *base);
#endif
