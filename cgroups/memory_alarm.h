/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_alarm - reports at once that a cgroup's memory usage has grown to a level, without polling.
 *
 * v2: the level is memory.high of the cgroup; its memory.events.local is watched with inotify. Beyond it the
 * kernel first reclaims page cache of the cgroup, then slows down its allocations, so an allocator of 1 GB/s
 * cannot outrun the decision. The cgroup is ours (all pods together); its memory.high is "max" while no level
 * is set, after an open and after a close. An agent that is killed leaves its level behind until the next
 * open: systemd/coracle.service.in takes it away.
 *
 * v1: eventfds for memory.usage_in_bytes (cgroup.event_control) and for reclaim (memory.pressure_level),
 * which is the only sign of growth while page cache fills the memory: usage then stays as it is. Nothing is
 * slowed down. "/" is the whole machine there.
 *
 * Usage includes page cache. A level that page cache has reached is reported again and again while the cgroup
 * reads files: cg_memory_alarm_rest() bounds that. Loop thread; quick: what takes time in the kernel is
 * written on the pool. On v2 that is a level below the usage, because the kernel reclaims the difference
 * within the write; on v1 every level, because the kernel waits there for all who read the list of
 * thresholds. The level before stays set until then, and a level that usage has passed meanwhile is reported.
 */
#ifndef CGROUPS_MEMORY_ALARM_H
#define CGROUPS_MEMORY_ALARM_H
#include "cgroups/cgroup.h"

#include <uv.h>

struct cg_memory_alarm;

/* `path` is absolute below the mount point. ERR_PRECONDITION: no memory controller. ERR_UNIMPLEMENTED: "/" on
 * v2. ERR_NOT_FOUND: no such cgroup. fn: usage has reached the level, or has been there (again); the alarm
 * stays set. It is never called from within these functions. */
enum err_code cg_memory_alarm_open(struct cg_memory_alarm **ret, struct cg_tree *t, const char *path,
                                   uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                                   struct err *e) MUST_CHECK;
/* Bytes; UINT64_MAX: none. `seen`: the usage that the caller knows of; a level between that and the usage is
 * reported. Setting the same level again is cheap. A failure on the pool is logged. */
enum err_code cg_memory_alarm_set(struct cg_memory_alarm *a, uint64_t bytes, uint64_t seen,
                                  struct err *e) MUST_CHECK;
/* Reports nothing for so long; what happened meanwhile is reported then. */
void cg_memory_alarm_rest(struct cg_memory_alarm *a, uint64_t ms);
bool cg_memory_alarm_slows(const struct cg_memory_alarm *a); /* v2: growth beyond the level is slowed down */
/* Takes the level away. `closed` is called when its handles are closed; may be NULL. */
void cg_memory_alarm_close(struct cg_memory_alarm *a, void (*closed)(void *arg), void *arg);
#endif
