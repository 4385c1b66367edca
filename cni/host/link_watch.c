/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/host/link_watch.h"

#include "base/scope.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct cni_link_watch {
    uv_poll_t poll;
    int fd;
    void (*fn)(void *arg, int32_t nsid);
    void *arg;
};

static void link_watch_read_events(struct cni_link_watch *w)
{
    for (;;) {
        char data[4096]; /* longer messages are truncated: only their arrival matters */
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
        struct sockaddr_nl from = { 0 };
        struct msghdr m = { .msg_name = &from,
                            .msg_namelen = sizeof(from),
                            .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control) };
        const struct cmsghdr *c;

        if (recvmsg(w->fd, &m, 0) < 0) {
            if (errno == ENOBUFS)
                w->fn(w->arg, CNI_NSID_ANY);
            else if (errno != EINTR)
                return;
            continue;
        }
        c = CMSG_FIRSTHDR(&m); /* none for our own namespace */
        if (from.nl_pid == 0 && c != NULL && c->cmsg_level == SOL_NETLINK &&
            c->cmsg_type == NETLINK_LISTEN_ALL_NSID && c->cmsg_len >= CMSG_LEN(sizeof(int))) {
            int nsid;

            memcpy(&nsid, CMSG_DATA(c), sizeof(nsid));
            if (nsid >= 0)
                w->fn(w->arg, nsid);
        }
    }
}

static void on_events(uv_poll_t *poll, int status, int events)
{
    (void)events;
    link_watch_read_events(poll->data);
    if (status != 0) /* messages were lost: libuv reports POLLERR as EBADF, and has stopped */
        uv_poll_start(poll, UV_READABLE, on_events);
}

static enum err_code listen_to(int fd, struct err *e)
{
    struct sockaddr_nl self = { .nl_family = AF_NETLINK,
                                .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
    /* BPF loads are big-endian, netlink is not. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_type)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELLINK), 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELADDR), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = { .len = ARRAY_LEN(code), .filter = code };
    int on = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0 ||
        setsockopt(fd, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)&self, sizeof(self)) != 0)
        return err_sys(e, errno, "listen to the interfaces of pods");
    return ERR_OK;
}

enum err_code cni_link_watch_open(struct cni_link_watch **ret, uv_loop_t *loop,
                                  void (*fn)(void *arg, int32_t nsid), void *arg, struct err *e)
{
    fd_auto fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    mem_auto struct cni_link_watch *w = calloc(1, sizeof(*w));
    int status;

    if (fd < 0)
        return err_sys(e, errno, "open netlink socket");
    if (w == NULL)
        return err_nomem(e);
    if (listen_to(fd, e) != ERR_OK)
        return e->code;
    status = uv_poll_init(loop, &w->poll, fd);
    if (status != 0)
        return err_sys(e, -status, "watch netlink");
    w->fd = take_fd(&fd);
    w->fn = fn;
    w->arg = arg;
    w->poll.data = w;
    uv_poll_start(&w->poll, UV_READABLE, on_events);
    *ret = take_ptr(&w);
    return ERR_OK;
}

static void link_watch_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void cni_link_watch_close(struct cni_link_watch *w)
{
    if (w == NULL)
        return;
    uv_close((uv_handle_t *)&w->poll, link_watch_on_closed);
    close(w->fd);
}
