/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/notify.h"
#include "base/files/patience.h"
#include "base/parse.h"
#include "base/scope.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define AGAIN_MS 100

void notify_open(struct notify *n)
{
    const char *path = getenv("NOTIFY_SOCKET"), *period = getenv("WATCHDOG_USEC"),
               *pid = getenv("WATCHDOG_PID");
    struct err e = { 0 };
    struct patience patience = { 0 };
    uint64_t us = 0, for_pid = 0;

    *n = (struct notify){ .fd = -1 };
    if (path != NULL && (path[0] == '/' || path[0] == '@') && strlen(path) < sizeof(n->to.sun_path)) {
        n->to.sun_family = AF_UNIX;
        n->to_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + (path[0] == '/'));
        memcpy(n->to.sun_path, path, strlen(path));
        if (path[0] == '@')
            n->to.sun_path[0] = '\0';
        do
            n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        while (n->fd < 0 && patience_wait(&patience));
    }
    if (pid != NULL && (parse_u64(pid, 1, UINT32_MAX, &for_pid, "WATCHDOG_PID", &e) != ERR_OK ||
                        for_pid != (uint64_t)getpid()))
        period = NULL;
    if (period != NULL && parse_u64(period, 1, UINT64_MAX / 2, &us, "WATCHDOG_USEC", &e) == ERR_OK)
        n->watchdog_ms = us / 2000;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

/* False: systemd's queue is full, or out of memory. Any other error closes the connection. */
static bool notify_try(const struct notify *n, const char *state)
{
    return sendto(n->fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&n->to,
                  n->to_size) >= 0 ||
           (errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ENOMEM);
}

static void notify_flush(struct notify *n)
{
    while (n->n_unsent > 0 && notify_try(n, n->unsent[0]))
        memmove(n->unsent[0], n->unsent[1], --n->n_unsent * sizeof(n->unsent[0]));
}

static void notify_again(uv_timer_t *timer)
{
    struct notify *n = timer->data;

    notify_flush(n);
    if (n->n_unsent == 0)
        uv_timer_stop(timer);
}

void notify_send(struct notify *n, const char *state)
{
    if (n->fd < 0)
        return;
    if (n->n_unsent == ARRAY_LEN(n->unsent))
        memmove(n->unsent[0], n->unsent[1], --n->n_unsent * sizeof(n->unsent[0]));
    snprintf(n->unsent[n->n_unsent++], sizeof(n->unsent[0]), "%s", state);
    notify_flush(n);
    if (n->n_unsent > 0 && n->timers_open)
        uv_timer_start(&n->again, notify_again, AGAIN_MS, AGAIN_MS);
}

static void notify_on_timer(uv_timer_t *timer)
{
    struct notify *n = timer->data;

    (void)notify_try(n, "WATCHDOG=1"); /* if it fails, the next one is sent */
}

void notify_start(struct notify *n, uv_loop_t *loop)
{
    if (n->fd < 0)
        return;
    uv_timer_init(loop, &n->watchdog);
    uv_timer_init(loop, &n->again);
    n->watchdog.data = n->again.data = n;
    n->timers_open = true;
    if (n->watchdog_ms != 0)
        uv_timer_start(&n->watchdog, notify_on_timer, 0, n->watchdog_ms);
}

void notify_close(struct notify *n)
{
    if (n->timers_open) {
        uv_close((uv_handle_t *)&n->watchdog, NULL);
        uv_close((uv_handle_t *)&n->again, NULL);
    }
    n->timers_open = false;
    if (n->fd >= 0)
        close(take_fd(&n->fd));
}
