/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - readiness and watchdog for systemd over its plain datagram socket (sd_notify(3)'s protocol).
 * Without NOTIFY_SOCKET every call does nothing.  The variables are taken out of the environment at once:
 * inherited by an OCI runtime they make it hang.
 */
#ifndef AGENT_NOTIFY_H
#define AGENT_NOTIFY_H
#include <uv.h>

struct notify {
    int fd;               /* -1: not under systemd */
    uint64_t watchdog_ms; /* half of WATCHDOG_USEC; 0: none asked for */
    uv_timer_t timer;
    int timer_open;
};

void notify_open(struct notify *n);                    /* before threads and children start */
void notify_send(struct notify *n, const char *state); /* "READY=1", "STOPPING=1", ... */
void notify_watchdog_start(struct notify *n,
                           uv_loop_t *loop); /* fed from the loop: a stuck loop is noticed */
void notify_close(struct notify *n);
#endif
