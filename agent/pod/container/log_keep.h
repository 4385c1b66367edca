/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_keep - keeps what conmon would throw away when a container's log is full.
 *
 * conmon counts what it writes (--log-size-max).  When a file is full it opens "3.log.tmp" with O_CREAT |
 * O_TRUNC and renames it over "3.log": the old file is gone unless it has a second name, and conmon neither
 * asks nor waits.  So:
 *
 *     the file being written has a second name, ".3.log.kept"
 *     "3.log.tmp" lies ready, with a second name ".3.log.next" and a lease (fcntl(2)) on it:
 *
 *     conmon opens 3.log.tmp ──► the kernel holds it and signals us
 *                                .3.log.kept becomes 3.log.<time>, .3.log.next becomes .3.log.kept,
 *                                the oldest files beyond the maximum go, the lease is let go
 *     conmon renames it over 3.log ──► the next 3.log.tmp is made ready
 *
 * So conmon is held for the microseconds that it takes to keep a file; no file grows beyond its size, as
 * conmon itself counts.  A file that is not made ready before conmon wants it, conmon makes itself, and is
 * not held: the second names keep that one, too, and only who fills two files before this thread has its turn
 * loses one, which is said.  Hence its priority.  The same goes for file systems without leases.
 *
 * While no agent runs nobody holds conmon either: the second names keep the files of two rotations, after
 * that whole files are lost.  The next agent puts the names in order and says that lines may be missing.
 * Somebody who moves, replaces or removes files here gets no worse than that: names are compared by inode at
 * each look.
 *
 * A thread of its own does this, as who is held must not wait for the loop or the pool; it gets the lease's
 * signals (blocked in it, read from a signalfd), and looks for the rename that follows in short steps.  What
 * others do with the files, and files without leases, the loop's watch of their folders reports.  Not
 * compressed: a rotated file can be read as it is.
 */
#ifndef AGENT_POD_CONTAINER_LOG_KEEP_H
#define AGENT_POD_CONTAINER_LOG_KEEP_H
#include "base/error.h"

#include <stdbool.h>
#include <uv.h>

struct log_keep;

/* `max_files`: per run, including the current one; at least 2. After an error *ret is NULL: the calls below
 * accept that, and nothing is kept. */
enum err_code log_keep_open(struct log_keep **ret, uv_loop_t *loop, unsigned max_files,
                            struct err *e) MUST_CHECK;
/* Waits for work in progress; containers continue to log. */
void log_keep_close(struct log_keep *k);

/* Each returns immediately; they are processed in order. `path`: ".../3.log", its folder exists. */
void log_keep_begin(struct log_keep *k, const char *path);  /* conmon writes it, or will; may be repeated */
void log_keep_end(struct log_keep *k, const char *path);    /* no longer written */
void log_keep_remove(struct log_keep *k, const char *path); /* including its rotated files */
#endif
