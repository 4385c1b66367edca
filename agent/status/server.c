/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 64, GROUP_BUFFER = 64 * 1024, ACCEPTS_A_TURN = 16, ACCEPT_AGAIN_MS = 1000 };

/* ---- permissions ---- */

enum peer_role server_peer_role(const struct status_server *s, uid_t uid, gid_t gid, const gid_t *groups,
                                size_t n)
{
    if (uid == 0)
        return PEER_ROOT;
    if (uid == geteuid() || (s->has_group && gid == s->gid))
        return PEER_READER;
    for (size_t i = 0; s->has_group && i < n; i++)
        if (groups[i] == s->gid)
            return PEER_READER;
    return PEER_NOBODY;
}

static enum err_code find_group(const char *name, gid_t *ret, struct err *e)
{
    mem_auto char *buffer = malloc(GROUP_BUFFER);
    struct err not_a_number = { 0 };
    struct group group, *found = NULL;
    uint64_t number;
    int sys;

    if (buffer == NULL)
        return err_nomem(e);
    sys = getgrnam_r(name, &group, buffer, GROUP_BUFFER, &found);
    if (found != NULL)
        *ret = group.gr_gid;
    else if (parse_u64(name, 0, UINT32_MAX - 1, &number, "group", &not_a_number) == ERR_OK)
        *ret = (gid_t)number;
    else if (sys != 0)
        return err_sys(e, sys, "look up group \"%s\"", name);
    else
        return err_set(e, ERR_NOT_FOUND, "group \"%s\" does not exist", name);
    return ERR_OK;
}

/* ---- the socket ---- */

static enum err_code set_address(struct sockaddr_un *address, const char *path, struct err *e)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address->sun_path))
        return err_set(e, ERR_INVALID, "its path is longer than %zu bytes", sizeof(address->sun_path) - 1);
    strcpy(address->sun_path, path);
    return ERR_OK;
}

/* Whether the listener of a connected socket is alive. Its socket can outlive it for a moment, in a child
 * that was about to exec when the listener was killed. */
static bool listener_lives(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 || peer.pid <= 0 ||
           kill(peer.pid, 0) == 0 || errno != ESRCH;
}

/* ERR_OK: no socket, or a dead daemon's. ERR_EXISTS: a daemon answers. */
static enum err_code check_place(const char *path, struct err *e)
{
    struct sockaddr_un address;
    struct stat st;
    fd_auto fd = -1;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "stat");
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, ERR_PRECONDITION, "exists and is not a socket");
    if (set_address(&address, path, e) != ERR_OK)
        return e->code;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, errno, "socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return listener_lives(fd) ? err_set(e, ERR_EXISTS, "another coracle is running on %s", path) : ERR_OK;
    if (errno == EAGAIN) /* its queue is full, so it is in use */
        return err_set(e, ERR_EXISTS, "another coracle is running on %s", path);
    return errno == ECONNREFUSED || errno == ENOENT ? ERR_OK : err_sys(e, errno, "connect");
}

/* Binds under a temporary name, sets owner and mode, then renames the socket over a dead one, so that no
 * client ever finds a gap or a socket with wrong permissions. */
static enum err_code bind_socket(struct status_server *s, int *ret, struct err *e)
{
    char beside[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct sockaddr_un address;
    struct stat st;
    fd_auto fd = -1;

    if (snprintf(beside, sizeof(beside), "%s.new", s->path) >= (int)sizeof(beside))
        return err_set(e, ERR_INVALID, "its path is longer than %zu bytes",
                       sizeof(beside) - strlen(".new") - 1);
    if (set_address(&address, beside, e) != ERR_OK)
        return e->code;
    if (unlink(beside) < 0 && errno != ENOENT)
        return err_sys(e, errno, "remove %s", beside);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, errno, "socket");
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return err_sys(e, errno, "bind %s", beside);
    if (chmod(beside, s->has_group ? 0660 : 0600) < 0)
        err_sys(e, errno, "chmod %s", beside);
    else if (s->has_group && chown(beside, (uid_t)-1, s->gid) < 0)
        err_sys(e, errno, "change the group of %s to %u", beside, s->gid);
    else if (listen(fd, BACKLOG) < 0)
        err_sys(e, errno, "listen");
    else if (rename(beside, s->path) < 0)
        err_sys(e, errno, "rename %s", beside);
    else if (lstat(s->path, &st) < 0)
        err_sys(e, errno, "stat");
    if (e->code != ERR_OK) {
        unlink(beside);
        return e->code;
    }
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    *ret = take_fd(&fd);
    return ERR_OK;
}

static void server_accept_again(uv_timer_t *timer);

/* The socket stays readable while clients wait: it is not polled until something may have changed. */
static void server_rest(struct status_server *s, int error)
{
    log_warn("cannot accept a client", F_STR("err", strerror(error)));
    uv_poll_stop(&s->listener);
    uv_timer_start(&s->accept_again, server_accept_again, ACCEPT_AGAIN_MS, 0);
}

static void server_on_readable(uv_poll_t *listener, int status, int events)
{
    struct status_server *s = listener->data;

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        struct conn *c = conn_new(s);
        int fd, error;

        if (c == NULL) {
            server_rest(s, ENOMEM);
            return;
        }
        fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            conn_accept(s, c, fd);
            continue;
        }
        error = errno;
        conn_unused(s, c);
        if (error == EAGAIN)
            return;
        if (error != EINTR && error != ECONNABORTED) {
            server_rest(s, error);
            return;
        }
    }
}

enum err_code status_server_lend(struct status_server *s, int *ret, struct err *e)
{
    struct conn *c;
    int fds[2];

    if (s->closing)
        return err_set(e, ERR_UNAVAILABLE, "the status socket is closed");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return err_sys(e, errno, "a connection of the status socket");
    c = conn_new(s);
    if (c == NULL) {
        close(fds[0]);
        close(fds[1]);
        return err_nomem(e);
    }
    c->role = PEER_LENT;
    conn_accept(s, c, fds[0]);
    *ret = fds[1];
    return ERR_OK;
}

static void server_accept_again(uv_timer_t *timer)
{
    server_resume(timer->data);
}

void server_resume(struct status_server *s)
{
    int status;

    if (s->closing || uv_is_active((uv_handle_t *)&s->listener))
        return;
    uv_timer_stop(&s->accept_again);
    status = uv_poll_start(&s->listener, UV_READABLE, server_on_readable);
    if (status != 0)
        server_rest(s, -status);
}

static void server_on_closed(uv_handle_t *handle)
{
    struct status_server *s = handle->data;

    s->open_handles--;
    server_maybe_free(s);
}

static void on_turns_closed(void *owner)
{
    struct status_server *s = owner;

    s->background_open = false;
    server_maybe_free(s);
}

/* A client that disconnects during an answer must not end the process: libuv writes without MSG_NOSIGNAL. */
static void ignore_sigpipe(void)
{
    struct sigaction now;

    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

/* ---- life ---- */

void server_maybe_free(struct status_server *s)
{
    struct pod_version *v, *tmp;

    if (!s->closing || s->open_handles > 0 || s->background_open || s->n_conns > 0 || s->n_logs > 0 ||
        s->n_execs > 0)
        return;
    HASH_ITER (hh, s->versions, v, tmp) {
        HASH_DEL(s->versions, v);
        free(v);
    }
    free(s->unused);
    free(s->spare);
    free(s->path);
    free(s);
}

static enum err_code listen_on_loop(struct status_server *s, struct err *e)
{
    int status = uv_poll_init(s->loop, &s->listener, s->fd);

    if (status != 0)
        return err_sys(e, -status, "poll the socket");
    s->open_handles++;
    uv_timer_init(s->loop, &s->accept_again);
    s->open_handles++;
    s->listener.data = s->accept_again.data = s;
    status = uv_poll_start(&s->listener, UV_READABLE, server_on_readable);
    return status != 0 ? err_sys(e, -status, "poll the socket") : ERR_OK;
}

enum err_code status_server_open(struct status_server **ret, const struct status_options *o, struct err *e)
{
    struct status_server *s = calloc(1, sizeof(*s));

    if (s == NULL || (s->path = strdup(o->path)) == NULL ||
        (s->spare = calloc(1, sizeof(*s->spare))) == NULL) {
        free(s != NULL ? s->path : NULL);
        free(s);
        return err_nomem(e);
    }
    ignore_sigpipe();
    s->loop = o->loop;
    s->provider = *o->provider;
    s->on_request = route_request;
    s->started_ns = clock_wall_ns();
    s->version = s->first_version = (uint64_t)s->started_ns / 1000000;
    s->head_ms = STATUS_HEAD_MS;
    s->idle_ms = STATUS_IDLE_MS;
    s->write_ms = STATUS_WRITE_MS;
    s->has_group = o->group != NULL;
    if ((s->has_group && find_group(o->group, &s->gid, e) != ERR_OK) || check_place(s->path, e) != ERR_OK ||
        bind_socket(s, &s->fd, e) != ERR_OK) {
        free(s->spare);
        free(s->path);
        free(s);
        return e->code == ERR_EXISTS ? e->code : err_wrap(e, "status socket %s", o->path);
    }
    background_init(&s->turns, s->loop);
    s->background_open = true;
    held_init(s);
    if (listen_on_loop(s, e) != ERR_OK) {
        status_server_close(s);
        return err_wrap(e, "status socket %s", o->path);
    }
    *ret = s;
    return ERR_OK;
}

void status_server_close(struct status_server *s)
{
    struct conn *c, *next;
    struct stat st;

    if (s == NULL)
        return;
    s->closing = true;
    if (lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
        unlink(s->path);
    if (s->open_handles > 0) {
        uv_close((uv_handle_t *)&s->listener, server_on_closed);
        uv_close((uv_handle_t *)&s->accept_again, server_on_closed);
    }
    close(s->fd);
    for (c = LIST_FIRST(&s->conns); c != NULL; c = next) {
        next = LIST_NEXT(c, all); /* freed later, when its handles are closed */
        conn_close(c);
    }
    background_close(&s->turns, on_turns_closed, s);
}
