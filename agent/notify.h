/* SPDX-License-Identifier: Apache-2.0 */
/* notify - readiness and watchdog notifications for systemd over its datagram socket (sd_notify(3)). Without
 * NOTIFY_SOCKET every call does nothing. The variables are removed from the environment immediately because
 * they make an OCI runtime hang. */
#ifndef AGENT_NOTIFY_H
#define AGENT_NOTIFY_H
#include <stdbool.h>
#include <sys/un.h>
#include <uv.h>

struct notify {
    int fd; /* -1: not under systemd */
    struct sockaddr_un to;
    socklen_t to_size;
    uint64_t watchdog_ms; /* half of WATCHDOG_USEC; 0: not requested */
    uv_timer_t watchdog, again;
    bool timers_open;
    char unsent[2][64]; /* in order: messages that could not be sent because systemd's queue was full, or
                           without memory */
    size_t n_unsent;
};

void notify_open(struct notify *n);                    /* before threads and children start */
void notify_send(struct notify *n, const char *state); /* "READY=1", "STOPPING=1", ...; never waits */
void notify_start(
    struct notify *n,
    uv_loop_t *loop); /* feeds the watchdog, so that a stuck loop is detected, and retries unsent messages */
void notify_close(struct notify *n);
#endif
