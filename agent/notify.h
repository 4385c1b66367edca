/* SPDX-License-Identifier: Apache-2.0 */
/* notify - readiness and watchdog notifications for systemd over its datagram socket (sd_notify(3)). Without
 * NOTIFY_SOCKET every call does nothing. The variables are removed from the environment immediately because
 * they make an OCI runtime hang. */
#ifndef AGENT_NOTIFY_H
#define AGENT_NOTIFY_H
#include <uv.h>

struct notify {
    int fd;               /* -1: not under systemd */
    uint64_t watchdog_ms; /* half of WATCHDOG_USEC; 0: not requested */
    uv_timer_t timer;
    int timer_open;
};

void notify_open(struct notify *n);                    /* before threads and children start */
void notify_send(struct notify *n, const char *state); /* "READY=1", "STOPPING=1", ... */
void notify_watchdog_start(struct notify *n,
                           uv_loop_t *loop); /* triggered by the loop, so that a stuck loop is noticed */
void notify_close(struct notify *n);
#endif
