/* SPDX-License-Identifier: Apache-2.0 */
/* watch - reports changes in a set of folders, even if they do not exist yet (the nearest existing parent is
 * watched for the next path element). Events that follow each other closely are reported once, so that a file
 * being written is usually seen complete. Loop thread only. */
#ifndef CNI_PLUGIN_WATCH_H
#define CNI_PLUGIN_WATCH_H
#include "base/error.h"

#include <uv.h>

/* Delay from the first event to the report: installers write several files at once. */
#define CNI_WATCH_SETTLE_MS 50

struct cni_watch;

enum err_code cni_watch_open(struct cni_watch **ret, uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                             struct err *e) MUST_CHECK;
/* Sets the folders (absolute paths, NULL-terminated). Call it before reading them: changes after this call
 * are reported. A folder that cannot be watched (permission) is an error; the others are watched. */
enum err_code cni_watch_set(struct cni_watch *w, const char *const *dirs, struct err *e) MUST_CHECK;
/* Calls fn once after `ms`, unless a change is reported first. */
void cni_watch_again(struct cni_watch *w, uint64_t ms, void (*fn)(void *arg));
/* Stops all events; the loop frees the memory on a later turn. NULL is fine. */
void cni_watch_close(struct cni_watch *w);
#endif
