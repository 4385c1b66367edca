/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pids_watch - reports, without polling, that the kernel refused a fork because a cgroup is at its limit of
 * processes: inotify on pids.events, on v1 and v2 alike.
 *
 * On v2 since Linux 6.11, the kernel counts a refusal in the cgroup whose limit was reached and in its
 * ancestors; otherwise in the cgroup of the process that called fork. So callers watch both: the cgroup of
 * all pods, and each container's.
 *
 * On v1, Linux 6.11 and later count refusals without sending an event (seen with 6.18).
 *
 * A process at its limit usually retries in a loop. So after a report the cgroup is not watched for
 * CG_PIDS_REST_MS; if a fork was refused meanwhile, it is reported again. Without inotify the file is polled
 * (base/files/watches.h). Loop thread.
 */
#ifndef CGROUPS_PIDS_WATCH_H
#define CGROUPS_PIDS_WATCH_H
#include "cgroups/cgroup.h"

#include <uv.h>

#define CG_PIDS_REST_MS 10000

struct cg_pids_watch;

/* fn is never called from within these functions; it may add and remove. ERR_PRECONDITION: no pids
 * controller. `t` stays valid. */
enum err_code cg_pids_watch_open(struct cg_pids_watch **ret, struct cg_tree *t, uv_loop_t *loop,
                                 void (*fn)(const char *path, void *arg), void *arg,
                                 struct err *e) MUST_CHECK;
/* `path` is absolute below the mount point. No effect if already watched. ERR_NOT_FOUND: no such cgroup, or a
 * kernel without pids.events (Linux 4.7). */
enum err_code cg_pids_watch_add(struct cg_pids_watch *w, const char *path, struct err *e) MUST_CHECK;
void cg_pids_watch_remove(struct cg_pids_watch *w, const char *path); /* no effect if not watched */
/* `closed` is called when its handle is closed; may be NULL. w NULL is fine. */
void cg_pids_watch_close(struct cg_pids_watch *w, void (*closed)(void *arg), void *arg);
#endif
