/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pressure - notifications of memory (CPU, I/O) shortage, as an alternative to polling every ten seconds.
 * Intended for pod eviction, which does not exist yet: only tests call it.
 *
 *     cg_pressure_open_psi()      tasks of a cgroup waited `stall_us` within `window_us` for a resource: the
 *                                 kernel's PSI triggers. v2, the v2 side of a hybrid, and "/" everywhere
 *     cg_pressure_open_memory()   memory usage reaches a number of bytes: memory.high and its events on v2
 *                                 (which throttles the cgroup from there on), the usage threshold of v1
 *
 * Each has one descriptor to poll for cg_pressure_poll_events(); the kernel limits notifications to one per
 * window (PSI) or per 10 ms (memory.events). After one, call cg_pressure_take(). Loop thread.
 */
#ifndef CGROUPS_PRESSURE_H
#define CGROUPS_PRESSURE_H
#include "cgroups/meter.h"

struct cg_pressure;

struct cg_psi_trigger {
    enum cg_resource resource;
    bool full;          /* all tasks waited, rather than some */
    unsigned stall_us;  /* at most window_us */
    unsigned window_us; /* 500 ms to 10 s (kernel limits); multiples of 2 s without CAP_SYS_RESOURCE */
};

/* ERR_INVALID: a number the kernel does not accept. ERR_UNIMPLEMENTED: no PSI (CONFIG_PSI, psi=1 on the
 * kernel command line, or a v1 cgroup). ERR_NOT_FOUND: no such cgroup. Linux 5.2. */
enum err_code cg_pressure_open_psi(struct cg_pressure **ret, struct cg_tree *t, const char *path,
                                   const struct cg_psi_trigger *trigger, struct err *e) MUST_CHECK;

/* `path` is absolute below the mount point, not "/". v2: writes memory.high, which stays after closing; a
 * second call with another number changes it. ERR_NOT_FOUND: no such cgroup, or it has no memory
 * controller. */
enum err_code cg_pressure_open_memory(struct cg_pressure **ret, struct cg_tree *t, const char *path,
                                      uint64_t bytes, struct err *e) MUST_CHECK;

void cg_pressure_close(struct cg_pressure *p); /* NULL is fine */
SCOPE_DEFINE(struct cg_pressure, cg_pressure_close)
int cg_pressure_fd(const struct cg_pressure *p);
short cg_pressure_poll_events(
    const struct cg_pressure *p); /* POLLIN or POLLPRI: UV_READABLE, UV_PRIORITIZED */
/* Call after poll() with its revents: true if the event happened since the last call. *ret_gone: the cgroup
 * was removed; close it. */
bool cg_pressure_take(struct cg_pressure *p, short revents, bool *ret_gone);
#endif
