/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_reader - the thread that reads file systems for eviction. The pool would do but for the moment that
 * counts: while a disk is written at full speed, all its threads may wait for a sync, and they have the usual
 * priority (base/priority.h). Asleep unless it is asked.
 *
 * Loop thread, except for `read`.
 */
#ifndef AGENT_POD_EVICTION_DISK_READER_H
#define AGENT_POD_EVICTION_DISK_READER_H
#include "base/error.h"

#include <uv.h>

struct disk_reader;
/* read(arg) runs on the thread, for each disk_reader_go(); then done(arg) on a later turn of the loop. */
enum err_code disk_reader_open(struct disk_reader **ret, uv_loop_t *loop, void (*read)(void *arg),
                               void (*done)(void *arg), void *arg, struct err *e) MUST_CHECK;
/* Once at a time: not again before done(). Until then the loop is kept alive. */
void disk_reader_go(struct disk_reader *r);
void disk_reader_close(struct disk_reader *r); /* not between disk_reader_go() and done(); NULL is fine */
#endif
