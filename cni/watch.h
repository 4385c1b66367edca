/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch - tells when something changed in a set of folders, also in ones that do not exist yet (the nearest
 * existing parent is watched for the next path element).  Events that come close together are told
 * once, so that a file that is being written is mostly seen whole.  Loop thread only.
 */
#ifndef CNI_WATCH_H
#define CNI_WATCH_H
#include "base/error.h"

#include <uv.h>

/* How long after the first event the change is told: installers write several files at once. */
#define CNI_WATCH_SETTLE_MS 50

struct cni_watch;

enum err_code cni_watch_open(struct cni_watch **ret, uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                             struct err *e) MUST_CHECK;
/*
 * The folders (absolute paths, NULL-terminated) from now on.  Call it before reading them: a change after
 * this call is told.  A folder that cannot be watched (permission) is the error; the
 * others are watched.
 */
enum err_code cni_watch_set(struct cni_watch *w, const char *const *dirs, struct err *e) MUST_CHECK;
/* Calls fn once after that time, unless something changes before. */
void cni_watch_again(struct cni_watch *w, uint64_t ms, void (*fn)(void *arg));
/* Nothing is told any more; the memory is freed by the loop on a later turn.  NULL is fine. */
void cni_watch_close(struct cni_watch *w);
#endif
