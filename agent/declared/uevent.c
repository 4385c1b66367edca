/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/declared/uevent.h"

#include "base/buf.h"
#include "base/scope.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAX 8192    /* the kernel's UEVENT_BUFFER_SIZE is 2048, plus the header before it */
#define KERNEL_GROUP 1      /* udev's messages have group 2 */
#define MESSAGES_A_TURN 256 /* the rest follows on the next turn of the loop */

struct uevents {
    uv_poll_t poll;
    int fd;
    void (*fn)(void *arg);
    void *arg;
};

/* "add@/devices/x", then "NAME=value"s, each with its NUL. */
bool uevent_matters(const char *message, size_t n)
{
    static const char *const actions[] = { "ACTION=add", "ACTION=remove", "ACTION=move", "ACTION=bind",
                                           "ACTION=unbind" };
    bool action = false, node = false;

    for (size_t i = 0; i < n;) {
        size_t length = strnlen(message + i, n - i);

        if (i + length == n) /* truncated */
            return false;
        for (size_t k = 0; k < ARRAY_LEN(actions); k++)
            action = action || strcmp(message + i, actions[k]) == 0;
        node = node || str_starts(message + i, "DEVNAME=");
        i += length + 1;
    }
    return action && node;
}

/* Returns false when no message is left. */
static bool read_one(struct uevents *u, bool *ret_event)
{
    char message[MESSAGE_MAX];
    struct iovec iov = { .iov_base = message, .iov_len = sizeof(message) };
    struct sockaddr_nl from = { 0 };
    struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1 };
    ssize_t n = recvmsg(u->fd, &m, 0);

    if (n < 0) {
        *ret_event = *ret_event || errno == ENOBUFS;
        return errno == ENOBUFS || errno == EINTR;
    }
    if (m.msg_namelen == sizeof(from) && from.nl_family == AF_NETLINK && from.nl_pid == 0 &&
        (m.msg_flags & MSG_TRUNC) == 0 && uevent_matters(message, (size_t)n))
        *ret_event = true;
    return true;
}

static void on_events(uv_poll_t *poll, int status, int events)
{
    struct uevents *u = poll->data;
    bool event = false;

    (void)events;
    for (int i = 0; i < MESSAGES_A_TURN && read_one(u, &event); i++)
        ;
    if (status != 0) /* messages were lost: libuv reports POLLERR as EBADF, and has stopped */
        uv_poll_start(poll, UV_READABLE, on_events);
    if (event)
        u->fn(u->arg);
}

enum err_code uevents_open(struct uevents **ret, uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                           struct err *e)
{
    const struct sockaddr_nl self = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
    fd_auto fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    mem_auto struct uevents *u = calloc(1, sizeof(*u));
    int status;

    if (u == NULL)
        return err_nomem(e);
    if (fd < 0)
        return err_sys(e, errno, "open a netlink socket");
    if (bind(fd, (const struct sockaddr *)&self, sizeof(self)) != 0)
        return err_sys(e, errno, "listen to the kernel's device events");
    status = uv_poll_init(loop, &u->poll, fd);
    if (status != 0)
        return err_sys(e, -status, "watch netlink");
    u->fd = take_fd(&fd);
    u->fn = fn;
    u->arg = arg;
    u->poll.data = u;
    uv_poll_start(&u->poll, UV_READABLE, on_events);
    *ret = take_ptr(&u);
    return ERR_OK;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void uevents_close(struct uevents *u)
{
    if (u == NULL)
        return;
    uv_close((uv_handle_t *)&u->poll, on_closed);
    close(u->fd);
}
