/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pressure - being woken when memory (or processors, or disks) run short, instead of looking every ten
 * seconds.  For an eviction of pods, which is not there yet: only the tests call it.
 *
 *     cg_pressure_open_psi()      tasks of a cgroup waited `stall_us` within `window_us` for a resource: the
 *                                 kernel's PSI triggers.  v2, the v2 side of a hybrid, and "/" everywhere
 *     cg_pressure_open_memory()   memory in use reaches a number of bytes: memory.high and its events on v2
 *                                 (which slows the cgroup down from there on), the usage threshold of v1
 *
 * One descriptor each, to be polled for cg_pressure_poll_events(); the kernel holds repeated notices back to
 * one in a window (PSI) or 10 ms (memory.events).  When it says so: cg_pressure_take().  Loop thread.
 */
#ifndef CGROUPS_PRESSURE_H
#define CGROUPS_PRESSURE_H
#include "cgroups/meter.h"

struct cg_pressure;

struct cg_psi_trigger {
    enum cg_resource resource;
    bool full;          /* all tasks waited, instead of some */
    unsigned stall_us;  /* at most window_us */
    unsigned window_us; /* 500 ms to 10 s, as the kernel allows; without CAP_SYS_RESOURCE whole 2 s */
};

/*
 * ERR_INVALID: a number that the kernel does not take.  ERR_UNIMPLEMENTED: no PSI here (CONFIG_PSI, psi=1 on
 * the kernel command line, or a v1 cgroup).  ERR_NOT_FOUND: no such cgroup.  Linux 5.2.
 */
enum err_code cg_pressure_open_psi(struct cg_pressure **ret, struct cg_tree *t, const char *path,
                                   const struct cg_psi_trigger *trigger, struct err *e) MUST_CHECK;

/*
 * `path` is absolute below the mount point, not "/".  v2: writes memory.high, which stays when this is
 * closed; bytes again with another number moves it.  ERR_NOT_FOUND: no such cgroup, or no memory controller
 * in it.
 */
enum err_code cg_pressure_open_memory(struct cg_pressure **ret, struct cg_tree *t, const char *path,
                                      uint64_t bytes, struct err *e) MUST_CHECK;

void cg_pressure_close(struct cg_pressure *p); /* NULL is fine */
SCOPE_DEFINE(struct cg_pressure, cg_pressure_close)
int cg_pressure_fd(const struct cg_pressure *p);
short cg_pressure_poll_events(
    const struct cg_pressure *p); /* POLLIN or POLLPRI: UV_READABLE, UV_PRIORITIZED */
/* After poll() said so, with its revents: true if what was asked for happened since the last call.
 * *ret_gone: the cgroup was removed, close it. */
bool cg_pressure_take(struct cg_pressure *p, short revents, bool *ret_gone);
#endif
