/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psi_watch - the kernel's pressure triggers (Documentation/accounting/psi.rst): an event when tasks were
 * stalled for a given time within a window, at most one event per window. A trigger costs nothing while there
 * is no pressure. It covers the whole machine (/proc/pressure/<resource>), on v1 and v2 alike. Loop thread.
 */
#ifndef CGROUPS_PSI_WATCH_H
#define CGROUPS_PSI_WATCH_H
#include "base/error.h"

#include <uv.h>

struct cg_psi_watch;
/* resource: "memory", "io", "cpu". Some task was stalled for stall_us of each window_us (500000 to 10000000).
 * Without CAP_SYS_RESOURCE the kernel accepts only multiples of 2 s: the window is then rounded up, and
 * stall_us in proportion. ERR_PRECONDITION: this kernel has no PSI, or it is switched off. ERR_INVALID: the
 * kernel rejects a number. */
enum err_code cg_psi_watch_open(struct cg_psi_watch **ret, const char *resource, uint64_t stall_us,
                                uint64_t window_us, uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                                struct err *e) MUST_CHECK;
/* `closed` is called when its handle is closed; may be NULL. */
void cg_psi_watch_close(struct cg_psi_watch *w, void (*closed)(void *arg), void *arg);
#endif
