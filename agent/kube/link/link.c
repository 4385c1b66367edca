/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/link/link.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/list.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HEAD_SIZE 4
#define READ_SIZE 65536
/* Descriptors that arrived before their messages were read; more than that is a broken peer. */
#define FDS_MAX 16

struct link_frame { /* to be sent */
    TAILQ_ENTRY(link_frame) link;
    struct buf bytes;
    size_t sent;
    int fd; /* -1: none, or it was sent */
};

struct kube_link {
    struct kube_link_options o;
    uv_poll_t poll;
    uv_idle_t again; /* active while whole frames wait for a later turn of the loop */
    TAILQ_HEAD(, link_frame) out;
    size_t backlog;
    struct buf in;
    int fds[FDS_MAX];
    size_t n_fds;
    bool lost, closed;
    unsigned open_handles;
};

/* ---- the end ---- */

static void frame_free(struct link_frame *f)
{
    buf_wipe(&f->bytes); /* it may hold a Secret */
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

static void link_on_handle_closed(uv_handle_t *handle)
{
    struct kube_link *l = handle->data;
    struct link_frame *f;

    if (--l->open_handles > 0)
        return;
    while ((f = TAILQ_FIRST(&l->out)) != NULL) {
        TAILQ_REMOVE(&l->out, f, link);
        frame_free(f);
    }
    buf_wipe(&l->in);
    for (size_t i = 0; i < l->n_fds; i++)
        close(l->fds[i]);
    close(l->o.fd);
    free(l);
}

void kube_link_close(struct kube_link *l)
{
    if (l == NULL || l->closed)
        return;
    l->closed = true;
    uv_close((uv_handle_t *)&l->poll, link_on_handle_closed);
    uv_close((uv_handle_t *)&l->again, link_on_handle_closed);
}

static void link_lose(struct kube_link *l, const struct err *why)
{
    if (l->lost || l->closed)
        return;
    l->lost = true;
    uv_poll_stop(&l->poll);
    uv_idle_stop(&l->again);
    l->o.on_lost(why, l->o.arg);
}

/* ---- receiving ---- */

static uint32_t length_of(const char *head)
{
    const unsigned char *b = (const unsigned char *)head;

    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Hands one whole frame over. False: there is none, or the link is lost. */
static bool take_frame(struct kube_link *l)
{
    struct err e = { 0 };
    json_t *message = NULL;
    uint32_t n;
    int fd = -1;

    if (l->in.n < HEAD_SIZE)
        return false;
    n = length_of(l->in.p);
    if (n > KUBE_LINK_MESSAGE_MAX) {
        err_set(&e, ERR_INTERNAL, "a message of %u bytes; at most %zu are allowed", n, KUBE_LINK_MESSAGE_MAX);
        link_lose(l, &e);
        return false;
    }
    if (l->in.n < HEAD_SIZE + n)
        return false;
    if (json_parse(l->in.p + HEAD_SIZE, n, KUBE_LINK_MESSAGE_MAX, &message, "message", &e) == ERR_OK &&
        json_str(message, "type") == NULL)
        err_set(&e, ERR_INTERNAL, "a message without a type");
    buf_remove_front(&l->in, HEAD_SIZE + n);
    if (e.code == ERR_OK && json_flag(message, "fd")) {
        if (l->n_fds == 0)
            err_set(&e, ERR_INTERNAL, "a message without its descriptor");
        else {
            fd = l->fds[0];
            memmove(l->fds, l->fds + 1, --l->n_fds * sizeof(l->fds[0]));
        }
    }
    if (e.code != ERR_OK)
        link_lose(l, &e);
    else
        l->o.on_message(message, fd, l->o.arg);
    json_decref(message);
    return e.code == ERR_OK;
}

static void take_frames(struct kube_link *l)
{
    bool more = true;

    for (int i = 0; i < KUBE_LINK_TURN && more; i++)
        more = !l->closed && !l->lost && take_frame(l);
    if (l->closed || l->lost)
        return;
    if (!more)
        uv_idle_stop(&l->again);
}

static void link_on_again(uv_idle_t *idle)
{
    take_frames(idle->data);
}

static void keep_fds(struct kube_link *l, struct msghdr *m, struct err *e)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (l->n_fds < FDS_MAX) {
                l->fds[l->n_fds++] = fd;
            } else {
                close(fd);
                err_set(e, ERR_INTERNAL, "more than %d descriptors without messages", FDS_MAX);
            }
        }
    }
    if (e->code == ERR_OK && (m->msg_flags & MSG_CTRUNC) != 0)
        err_set(e, ERR_INTERNAL, "some descriptors could not be received");
}

static void link_receive(struct kube_link *l)
{
    char control[CMSG_SPACE(FDS_MAX * sizeof(int))];
    struct iovec v = { .iov_len = READ_SIZE };
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    struct err e = { 0 };
    ssize_t n;

    v.iov_base = buf_room(&l->in, READ_SIZE);
    if (v.iov_base == NULL) {
        err_nomem(&e);
        link_lose(l, &e);
        return;
    }
    n = recvmsg(l->o.fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        err_sys(&e, errno, "receive");
    else if (n == 0)
        err_set(&e, ERR_UNAVAILABLE, "the other end closed the connection");
    else
        keep_fds(l, &m, &e);
    if (e.code != ERR_OK) {
        link_lose(l, &e);
        return;
    }
    l->in.n += (size_t)n;
    l->in.p[l->in.n] = '\0';
    uv_idle_start(&l->again, link_on_again);
    take_frames(l);
}

/* ---- sending ---- */

static void link_watch(struct kube_link *l);

/* False: the socket is full, or the link is lost. */
static bool send_some(struct kube_link *l, struct link_frame *f)
{
    char control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec v = { .iov_base = f->bytes.p + f->sent, .iov_len = f->bytes.n - f->sent };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
    struct err e = { 0 };
    ssize_t n;

    if (f->fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof(control);
        *CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
                                               .cmsg_level = SOL_SOCKET,
                                               .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &f->fd, sizeof(int));
    }
    n = sendmsg(l->o.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0) {
        err_sys(&e, errno, "send");
        link_lose(l, &e);
        return false;
    }
    if (f->fd >= 0)
        close(take_fd(&f->fd));
    f->sent += (size_t)n;
    l->backlog -= (size_t)n;
    return true;
}

static void link_flush(struct kube_link *l)
{
    struct link_frame *f;

    while ((f = TAILQ_FIRST(&l->out)) != NULL) {
        if (!send_some(l, f))
            break;
        if (f->sent < f->bytes.n)
            continue;
        TAILQ_REMOVE(&l->out, f, link);
        frame_free(f);
    }
    if (!l->lost && !l->closed)
        link_watch(l);
}

static void link_on_poll(uv_poll_t *poll, int status, int events)
{
    struct kube_link *l = poll->data;

    (void)status; /* an error shows in recvmsg() */
    if ((events & UV_WRITABLE) != 0)
        link_flush(l);
    /* While whole frames wait for their turn, the other end waits, too. */
    if (!l->lost && !l->closed && !uv_is_active((uv_handle_t *)&l->again) &&
        ((events & UV_READABLE) != 0 || status < 0))
        link_receive(l);
}

static void link_watch(struct kube_link *l)
{
    uv_poll_start(&l->poll, UV_READABLE | (TAILQ_EMPTY(&l->out) ? 0 : UV_WRITABLE), link_on_poll);
}

enum err_code kube_link_send(struct kube_link *l, json_t *message, int fd, struct err *e)
{
    struct link_frame *f = NULL;
    fd_auto taken = fd;
    json_auto_t *m = message;

    if (l->lost || l->closed)
        return err_set(e, ERR_UNAVAILABLE, "the connection is lost");
    f = calloc(1, sizeof(*f));
    if (f == NULL || (taken >= 0 && json_object_set_new(m, "fd", json_true()) != 0)) {
        free(f);
        return err_nomem(e);
    }
    f->fd = -1;
    buf_init(&f->bytes, HEAD_SIZE + KUBE_LINK_MESSAGE_MAX);
    buf_add(&f->bytes, "\0\0\0\0", HEAD_SIZE);
    json_add_text(&f->bytes, m, false, 0);
    if (f->bytes.failed || l->backlog + f->bytes.n > KUBE_LINK_BACKLOG_MAX) {
        if (f->bytes.failed)
            err_set(e, ERR_EXHAUSTED, "the message is longer than %zu bytes, or memory is exhausted",
                    KUBE_LINK_MESSAGE_MAX);
        else
            err_set(e, ERR_EXHAUSTED, "%zu bytes are already queued for the peer", l->backlog);
        frame_free(f);
        return e->code;
    }
    for (int i = 0; i < HEAD_SIZE; i++)
        f->bytes.p[i] = (char)((f->bytes.n - HEAD_SIZE) >> (8 * i) & 0xff);
    f->fd = take_fd(&taken);
    l->backlog += f->bytes.n;
    TAILQ_INSERT_TAIL(&l->out, f, link);
    link_watch(l); /* sent from the loop: a burst of messages is one wake-up of the other end */
    return ERR_OK;
}

size_t kube_link_backlog(const struct kube_link *l)
{
    return l->backlog;
}

/* ---- opening ---- */

enum err_code kube_link_open(struct kube_link **ret, const struct kube_link_options *o, struct err *e)
{
    struct kube_link *l = calloc(1, sizeof(*l));
    int r;

    if (l == NULL) {
        close(o->fd);
        return err_nomem(e);
    }
    l->o = *o;
    TAILQ_INIT(&l->out);
    buf_init(&l->in, HEAD_SIZE + KUBE_LINK_MESSAGE_MAX + READ_SIZE);
    r = uv_poll_init(o->loop, &l->poll, o->fd);
    if (r != 0) {
        err_set(e, ERR_EXHAUSTED, "watch the connection: %s", uv_strerror(r));
        close(o->fd);
        free(l);
        return e->code;
    }
    uv_idle_init(o->loop, &l->again);
    l->poll.data = l->again.data = l;
    l->open_handles = 2;
    link_watch(l);
    *ret = l;
    return ERR_OK;
}
