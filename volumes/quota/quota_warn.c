/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/quota/quota_warn.h"

#include "base/scope.h"
#include "volumes/quota/internal.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <string.h>
#include <sys/socket.h>

#define FAMILY "VFS_DQUOT"
#define GROUP "events"
#define MESSAGE_MAX 4096    /* a warning has some 90 bytes; the family's description less than 500 */
#define MESSAGES_A_TURN 512 /* the rest follows on the next turn of the loop */
#define WARNINGS_A_TURN 64  /* different ones; more are "check everything" */
/* XFS warns about each write that it refuses, as often as a program tries. After so many messages the socket
 * is left alone for a moment, so that this costs the agent little; then other warnings are late by as much.
 */
#define FLOOD 128
#define FLOOD_PAUSE_MS 50
#define FLOOD_PAUSE_MAX_MS 400 /* doubled while it continues */

struct quota_warn {
    uv_poll_t poll;
    uv_timer_t pause;
    uint64_t pause_ms;
    unsigned open_handles;
    struct mnl_socket *nl;
    unsigned family;
    void (*fn)(const struct quota_warning *w, void *arg);
    void *arg;
    void (*closed)(void *arg);
    void *closed_arg;
    bool lost; /* of this turn */
    size_t n;
    struct quota_warning warnings[WARNINGS_A_TURN];
};

static void socket_close_p(struct mnl_socket **s)
{
    if (*s != NULL)
        mnl_socket_close(*s);
}

/* ---- the family ---------------------------------------------------------------------------------------- */

struct family {
    uint32_t id, group;
};

static int on_group_attribute(const struct nlattr *a, void *data)
{
    const struct nlattr **v = data;

    if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_ID && mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
        v[0] = a;
    if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_NAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
        v[1] = a;
    return MNL_CB_OK;
}

static int on_family_attribute(const struct nlattr *a, void *data)
{
    struct family *f = data;
    const struct nlattr *group;

    if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID && mnl_attr_validate(a, MNL_TYPE_U16) >= 0)
        f->id = mnl_attr_get_u16(a);
    if (mnl_attr_get_type(a) != CTRL_ATTR_MCAST_GROUPS)
        return MNL_CB_OK;
    mnl_attr_for_each_nested(group, a)
    {
        const struct nlattr *v[2] = { NULL, NULL };

        if (mnl_attr_parse_nested(group, on_group_attribute, v) == MNL_CB_OK && v[0] != NULL &&
            v[1] != NULL && strcmp(mnl_attr_get_str(v[1]), GROUP) == 0)
            f->group = mnl_attr_get_u32(v[0]);
    }
    return MNL_CB_OK;
}

static int on_family(const struct nlmsghdr *h, void *data)
{
    return mnl_attr_parse(h, sizeof(struct genlmsghdr), on_family_attribute, data);
}

/* The kernel answers at once. */
static enum err_code find_family(struct mnl_socket *nl, struct family *ret, struct err *e)
{
    _Alignas(struct nlmsghdr) char buffer[MESSAGE_MAX];
    struct nlmsghdr *h = mnl_nlmsg_put_header(buffer);
    struct genlmsghdr *g;
    ssize_t n;

    h->nlmsg_type = GENL_ID_CTRL;
    h->nlmsg_flags = NLM_F_REQUEST;
    h->nlmsg_seq = 1;
    g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
    g->cmd = CTRL_CMD_GETFAMILY;
    g->version = 1;
    mnl_attr_put_strz(h, CTRL_ATTR_FAMILY_NAME, FAMILY);
    if (mnl_socket_sendto(nl, h, h->nlmsg_len) < 0)
        return err_sys(e, errno, "request the netlink family %s", FAMILY);
    do
        n = mnl_socket_recvfrom(nl, buffer, sizeof(buffer));
    while (n < 0 && errno == EINTR);
    if (n < 0 || mnl_cb_run(buffer, (size_t)n, 1, mnl_socket_get_portid(nl), on_family, ret) < 0) {
        if (errno == ENOENT)
            return err_set(e, ERR_PRECONDITION,
                           "the kernel sends no warnings about quotas (no netlink family %s)", FAMILY);
        return err_sys(e, errno, "request the netlink family %s", FAMILY);
    }
    if (ret->id == 0 || ret->group == 0)
        return err_set(e, ERR_PRECONDITION, "the netlink family %s has no group \"%s\"", FAMILY, GROUP);
    return ERR_OK;
}

/* ---- warnings ------------------------------------------------------------------------------------------ */

static bool equal(const struct quota_warning *a, const struct quota_warning *b)
{
    return a->device == b->device && a->project == b->project && a->type == b->type;
}

static void on_warning(const struct quota_warning *w, void *arg)
{
    struct quota_warn *q = arg;

    for (size_t i = 0; i < q->n; i++)
        if (equal(&q->warnings[i], w))
            return;
    if (q->n < WARNINGS_A_TURN)
        q->warnings[q->n++] = *w;
    else
        q->lost = true;
}

/* Returns false when nothing is left to read. */
static bool read_one(struct quota_warn *q)
{
    _Alignas(struct nlmsghdr) char message[MESSAGE_MAX];
    struct iovec iov = { .iov_base = message, .iov_len = sizeof(message) };
    struct sockaddr_nl from = { 0 };
    struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1 };
    ssize_t n = recvmsg(mnl_socket_get_fd(q->nl), &m, MSG_DONTWAIT);

    if (n < 0) {
        q->lost = q->lost || errno == ENOBUFS;
        return errno == ENOBUFS || errno == EINTR;
    }
    if (m.msg_namelen != sizeof(from) || from.nl_family != AF_NETLINK || from.nl_pid != 0)
        return true; /* not of the kernel */
    if ((m.msg_flags & MSG_TRUNC) != 0 || !quota_message_read(message, (size_t)n, q->family, on_warning, q))
        q->lost = true;
    return true;
}

static void on_readable(uv_poll_t *poll, int status, int events);

static void on_paused(uv_timer_t *timer)
{
    struct quota_warn *q = timer->data;

    uv_poll_start(&q->poll, UV_READABLE, on_readable);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct quota_warn *q = poll->data;
    int n = 0;

    (void)events;
    q->n = 0;
    q->lost = false;
    while (n < MESSAGES_A_TURN && read_one(q))
        n++;
    if (n < FLOOD)
        q->pause_ms = 0;
    if (n >= FLOOD) {
        q->pause_ms = q->pause_ms == 0 ? FLOOD_PAUSE_MS : 2 * q->pause_ms;
        q->pause_ms = q->pause_ms < FLOOD_PAUSE_MAX_MS ? q->pause_ms : FLOOD_PAUSE_MAX_MS;
        uv_poll_stop(poll);
        uv_timer_start(&q->pause, on_paused, q->pause_ms, 0);
    } else if (status != 0) { /* messages were lost: libuv reports POLLERR as EBADF, and has stopped */
        uv_poll_start(poll, UV_READABLE, on_readable);
    }
    for (size_t i = 0; i < q->n; i++)
        q->fn(&q->warnings[i], q->arg);
    if (q->lost)
        q->fn(&(struct quota_warning){ .lost = true }, q->arg);
}

enum err_code quota_warn_open(struct quota_warn **ret, uv_loop_t *loop,
                              void (*fn)(const struct quota_warning *w, void *arg), void *arg, struct err *e)
{
    struct mnl_socket *nl __attribute__((cleanup(socket_close_p))) =
        mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
    mem_auto struct quota_warn *q = calloc(1, sizeof(*q));
    struct family family = { 0 };
    int group, status;

    if (q == NULL)
        return err_nomem(e);
    if (nl == NULL || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
        return err_sys(e, errno, "open a netlink socket");
    if (find_family(nl, &family, e) != ERR_OK)
        return e->code;
    group = (int)family.group;
    if (mnl_socket_setsockopt(nl, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
        return err_sys(e, errno, "listen to the kernel's warnings about quotas");
    status = uv_poll_init(loop, &q->poll, mnl_socket_get_fd(nl));
    if (status != 0)
        return err_sys(e, -status, "watch netlink");
    uv_timer_init(loop, &q->pause);
    q->pause.data = q;
    q->open_handles = 2;
    q->nl = take_ptr(&nl);
    q->family = family.id;
    q->fn = fn;
    q->arg = arg;
    q->poll.data = q;
    uv_poll_start(&q->poll, UV_READABLE, on_readable);
    *ret = take_ptr(&q);
    return ERR_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct quota_warn *q = handle->data;

    if (--q->open_handles > 0)
        return;
    if (q->closed != NULL)
        q->closed(q->closed_arg);
    free(q);
}

void quota_warn_close(struct quota_warn *q, void (*closed)(void *arg), void *arg)
{
    if (q == NULL)
        return;
    q->closed = closed;
    q->closed_arg = arg;
    uv_close((uv_handle_t *)&q->poll, on_closed);
    uv_close((uv_handle_t *)&q->pause, on_closed);
    mnl_socket_close(q->nl);
}
