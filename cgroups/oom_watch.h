/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom_watch - reports, without polling, that the OOM killer killed processes of a cgroup: with watches of
 * memory.events (v2), or an eventfd for the memory.oom_control of each cgroup (v1). One descriptor to wait
 * for, whatever the number of cgroups; an event costs a look at the cgroup that had it.
 *
 * The descriptor may become readable without a kill: v2 reports all memory events, and a cgroup at its limit
 * has many; v1 reports before the process is chosen. So call cg_oom_watch_read() when it is readable, and if
 * no kill was found, again after CG_OOM_LOOK_AGAIN_MS, without polling the descriptor in between. Loop
 * thread.
 */
#ifndef CGROUPS_OOM_WATCH_H
#define CGROUPS_OOM_WATCH_H
#include "cgroups/cgroup.h"

#include <uv.h>

#define CG_OOM_LOOK_AGAIN_MS 100

struct cg_oom_watch;

/* ERR_PRECONDITION: no memory controller. */
enum err_code cg_oom_watch_open(struct cg_oom_watch **ret, struct cg_tree *t, uv_loop_t *loop,
                                struct err *e) MUST_CHECK;
void cg_oom_watch_close(struct cg_oom_watch *w);   /* NULL is fine */
int cg_oom_watch_fd(const struct cg_oom_watch *w); /* poll for reading */

/* Watches a cgroup (absolute below the mount point) and everything below it. `counted`: kills already known.
 * ERR_EXISTS: already watched. */
enum err_code cg_oom_watch_add(struct cg_oom_watch *w, const char *path, uint64_t counted,
                               struct err *e) MUST_CHECK;
void cg_oom_watch_remove(struct cg_oom_watch *w, const char *path); /* call before removing the cgroup */

/*
 * Calls fn for each cgroup with kills since the last call; *ret_found is the number of such cgroups.  With
 * `again`, also checks cgroups that had an event without a kill before.  fn must not add or remove watches.
 * Returns false if a count could not be read; a later call will report its kills.
 */
bool cg_oom_watch_read(struct cg_oom_watch *w, bool again,
                       void (*fn)(const char *path, uint64_t kills, void *arg), void *arg,
                       size_t *ret_found) MUST_CHECK;

/*
 * The kills of one cgroup since the last call of this function or cg_oom_watch_read(); 0 if it is not
 * watched.
 */
enum err_code cg_oom_watch_take(struct cg_oom_watch *w, const char *path, uint64_t *ret,
                                struct err *e) MUST_CHECK;

/* The kernel's count; absent: no such cgroup or no counter. `below`: on v2 includes the cgroups below (v1
 * never does); otherwise only this cgroup, where memory.events.local exists (Linux 5.2). */
struct presence cg_read_oom_kills(struct cg_tree *t, const char *path, bool below, uint64_t *ret,
                                  struct err *e) MUST_CHECK;
#endif
