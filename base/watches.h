/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watches - inotify for all of a loop through one instance.
 *
 * Instances are few, and limited for the host's user 0, whom root of every container shares where pods have
 * no user namespace: the agent may find none left.  So all that watches on a loop shares one instance, each
 * through a set of its own: watches of two sets do not disturb one another, even of the same inode.
 *
 * Without an instance, or beyond fs.inotify.max_user_watches, the paths concerned are polled each
 * WATCHES_POLL_MS: a folder whose entries are not what they were brings IN_Q_OVERFLOW (something happened,
 * look at all), a file IN_MODIFY, a path that is gone IN_IGNORED.  One warning says so; an instance is tried
 * for again, and once it is there all is watched as ever, after one more IN_Q_OVERFLOW.
 *
 * Loop thread only.
 */
#ifndef BASE_WATCHES_H
#define BASE_WATCHES_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { WATCHES_POLL_MS = 1000 };

struct watch_set;

/* `name`: "" where the event is about the path itself.  wd is -1 with IN_Q_OVERFLOW alone.  fn may add,
 * remove and close. */
typedef void (*watch_fn)(int wd, uint32_t mask, const char *name, void *arg);

/* Fails only without memory. */
enum err_code watch_set_open(struct watch_set **ret, uv_loop_t *loop, watch_fn fn, void *arg,
                             struct err *e) MUST_CHECK;
/*
 * As inotify_add_watch(): the watch's number, unique in the set, the same for the same inode, whose events
 * are then those of both masks; or -1 and errno, which is never for want of instances or watches.
 */
int watch_set_add(struct watch_set *s, const char *path, uint32_t mask);
void watch_set_remove(struct watch_set *s, int wd); /* a number that is not known is fine */
/* Nothing is told any more; what is left closes with the loop's next turns.  NULL is fine. */
void watch_set_close(struct watch_set *s);

/* How many paths are polled, and why; 0: none. */
size_t watches_polled(const uv_loop_t *loop, char *ret_why, size_t size);
/* Tests: no instance is to be had from now on; those that are there are closed. */
void watches_force_poll(uv_loop_t *loop, bool on);
#endif
