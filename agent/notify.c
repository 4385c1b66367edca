/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/notify.h"
#include "base/parse.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_open(struct notify *n)
{
    const char *path = getenv("NOTIFY_SOCKET"), *period = getenv("WATCHDOG_USEC"),
               *pid = getenv("WATCHDOG_PID");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct err e = { 0 };
    uint64_t us = 0, for_pid = 0;

    *n = (struct notify){ .fd = -1 };
    if (path != NULL && (path[0] == '/' || path[0] == '@') && strlen(path) < sizeof(to.sun_path)) {
        socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + (path[0] == '/'));
        memcpy(to.sun_path, path, strlen(path));
        if (path[0] == '@')
            to.sun_path[0] = '\0';
        n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (n->fd >= 0 && connect(n->fd, (struct sockaddr *)&to, len) != 0) {
            close(n->fd);
            n->fd = -1;
        }
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

void notify_send(struct notify *n, const char *state)
{
    if (n->fd >= 0 && send(n->fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) {
        close(n->fd); /* systemd is gone or was replaced: this socket will not work again */
        n->fd = -1;
    }
}

static void notify_on_timer(uv_timer_t *timer)
{
    struct notify *n = timer->data;

    notify_send(n, "WATCHDOG=1");
}

void notify_watchdog_start(struct notify *n, uv_loop_t *loop)
{
    if (n->fd < 0 || n->watchdog_ms == 0)
        return;
    uv_timer_init(loop, &n->timer);
    n->timer.data = n;
    n->timer_open = 1;
    uv_timer_start(&n->timer, notify_on_timer, 0, n->watchdog_ms);
}

void notify_close(struct notify *n)
{
    if (n->timer_open)
        uv_close((uv_handle_t *)&n->timer, NULL);
    n->timer_open = 0;
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}
