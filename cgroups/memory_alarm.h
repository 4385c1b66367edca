/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_alarm - reports at once that a cgroup's memory usage has grown to a level, without polling.
 *
 * v2: the level is memory.high of the cgroup; memory.events is watched with inotify. Beyond it the kernel
 * first reclaims page cache of the cgroup, then slows down its allocations, so an allocator of 1 GB/s cannot
 * outrun the decision. v1: an eventfd for memory.usage_in_bytes (cgroup.event_control); nothing is slowed
 * down.
 *
 * The cgroup is ours (all pods together). Its memory.high is "max" while no alarm is set. Loop thread; quick.
 */
#ifndef CGROUPS_MEMORY_ALARM_H
#define CGROUPS_MEMORY_ALARM_H
#include "cgroups/cgroup.h"

#include <uv.h>

struct cg_memory_alarm;

/* `path` is absolute below the mount point. ERR_PRECONDITION: no memory controller. fn: usage has reached the
 * level, or has been there (again); the alarm stays set. */
enum err_code cg_memory_alarm_open(struct cg_memory_alarm **ret, struct cg_tree *t, const char *path,
                                   uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                                   struct err *e) MUST_CHECK;
/* Bytes; UINT64_MAX: none. Setting the same level again is cheap. */
enum err_code cg_memory_alarm_set(struct cg_memory_alarm *a, uint64_t bytes, struct err *e) MUST_CHECK;
bool cg_memory_alarm_slows(const struct cg_memory_alarm *a); /* v2: growth beyond the level is slowed down */
/* Takes the level away. `closed` is called when its handles are closed; may be NULL. */
void cg_memory_alarm_close(struct cg_memory_alarm *a, void (*closed)(void *arg), void *arg);
#endif
