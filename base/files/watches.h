/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watches - inotify for a whole loop through one instance.
 *
 * Instances are limited per user on the host, and without user namespaces root of every container shares user
 * 0 with us, so the agent may find none left. Therefore all watchers of a loop share one instance, each
 * through its own set; watches of two sets do not affect each other, even for the same inode.
 *
 * Without an instance, or beyond fs.inotify.max_user_watches, paths are polled every WATCHES_POLL_MS: a
 * folder whose entries changed yields IN_Q_OVERFLOW (something changed: scan everything), a file IN_MODIFY, a
 * path that disappeared IN_IGNORED. This is logged once as a warning. The instance is retried; when it
 * succeeds, everything is watched again, after one more IN_Q_OVERFLOW.
 *
 * Loop thread only.
 */
#ifndef BASE_FILES_WATCHES_H
#define BASE_FILES_WATCHES_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { WATCHES_POLL_MS = 1000 };

struct watch_set;

/* `name` is "" if the event is about the path itself. wd is -1 only with IN_Q_OVERFLOW. fn may add, remove
 * and close. */
typedef void (*watch_fn)(int wd, uint32_t mask, const char *name, void *arg);

/* Fails only when out of memory. */
enum err_code watch_set_open(struct watch_set **ret, uv_loop_t *loop, watch_fn fn, void *arg,
                             struct err *e) MUST_CHECK;
/* Like inotify_add_watch(): returns a number, unique in the set and equal for equal inodes (the masks are
 * then merged); or -1 and errno, but never because instances or watches are exhausted. */
int watch_set_add(struct watch_set *s, const char *path, uint32_t mask);
void watch_set_remove(struct watch_set *s, int wd); /* unknown numbers are fine */
/* Stops all events; the rest closes during the loop's next turns. NULL is fine. */
void watch_set_close(struct watch_set *s);

/* How many paths are polled, and why; 0 if none. */
size_t watches_polled(const uv_loop_t *loop, char *ret_why, size_t size);
/* Tests: no instance is available from now on; existing ones are closed. */
void watches_force_poll(uv_loop_t *loop, bool on);
#endif
