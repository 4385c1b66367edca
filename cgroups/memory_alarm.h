/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_alarm - reports, without polling, that a cgroup's memory usage has reached a level.
 *
 * v2: the level is memory.high of the cgroup; its memory.events.local is watched with inotify. Above the
 * level the kernel first reclaims page cache of the cgroup, then slows down its allocations, so an allocator
 * of 1 GB/s cannot outrun the decision. The cgroup is ours (all pods together); its memory.high is "max"
 * after an open, after a close, and while no level is set. The level of a killed agent stays until the next
 * open; systemd/coracle.service.in resets it.
 *
 * v1: eventfds for memory.usage_in_bytes (cgroup.event_control) and for reclaim (memory.pressure_level),
 * which is the only sign of growth once page cache has filled the memory and usage no longer changes. Nothing
 * is slowed down. On v1, "/" is the whole machine.
 *
 * Usage includes page cache. While page cache keeps the usage at the level, each read of a file causes
 * another report: cg_memory_alarm_rest() limits these. Loop thread, quick: writes that take the kernel long
 * run on the pool. On v2 these are levels below the usage, because the kernel reclaims the difference within
 * the write; on v1 all levels, because the kernel waits for all readers of its list of thresholds. The
 * previous level stays set until the write is done, and a level that usage has passed meanwhile is reported.
 */
#ifndef CGROUPS_MEMORY_ALARM_H
#define CGROUPS_MEMORY_ALARM_H
#include "cgroups/cgroup.h"

#include <uv.h>

struct cg_memory_alarm;

/* `path` is absolute below the mount point. ERR_PRECONDITION: no memory controller. ERR_UNIMPLEMENTED: "/" on
 * v2. ERR_NOT_FOUND: no such cgroup. fn is called whenever usage reaches the level; the alarm stays set. fn
 * is never called from within these functions. */
enum err_code cg_memory_alarm_open(struct cg_memory_alarm **ret, struct cg_tree *t, const char *path,
                                   uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                                   struct err *e) MUST_CHECK;
/* Bytes; UINT64_MAX: none. `seen`: the usage known to the caller; a level between `seen` and the present
 * usage is reported. Setting the same level again is cheap. A failure on the pool is logged. */
enum err_code cg_memory_alarm_set(struct cg_memory_alarm *a, uint64_t bytes, uint64_t seen,
                                  struct err *e) MUST_CHECK;
/* Pauses the reports for `ms`; events of the pause are reported at its end. */
void cg_memory_alarm_rest(struct cg_memory_alarm *a, uint64_t ms);
bool cg_memory_alarm_slows(const struct cg_memory_alarm *a); /* v2: growth beyond the level is slowed down */
/* Removes the level. `closed` is called when its handles are closed; may be NULL. */
void cg_memory_alarm_close(struct cg_memory_alarm *a, void (*closed)(void *arg), void *arg);
#endif
