/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - a TCP server on 127.0.0.1 for the tests of checks: a child that answers each connection with the
 * next of some texts, in pieces and with pauses as asked; and a loop that runs one check to its end.
 */
#ifndef TESTS_UNIT_AGENT_PROBE_SERVER_H
#define TESTS_UNIT_AGENT_PROBE_SERVER_H
#include "agent/probe/probe.h"
#include "tests/unit/base/helper.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

struct server {
    int fd; /* listening */
    unsigned port;
    pid_t pid;
};

enum serve { SERVE_CLOSE, SERVE_HOLD, SERVE_RESET, SERVE_DRIP, SERVE_FLOOD };

static inline void server_listen(struct server *s)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(a);

    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &size), 0);
    s->port = ntohs(a.sin_port);
    s->pid = 0;
}

static inline void serve_one(int fd, const char *text, enum serve how)
{
    char request[4096];

    if (recv(fd, request, sizeof(request), 0) < 0)
        _exit(1);
    if (how == SERVE_DRIP) {
        for (size_t i = 0;; i++) {
            usleep(50000);
            if (send(fd, text + i % strlen(text), 1, MSG_NOSIGNAL) != 1)
                return;
        }
    }
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
    if (how == SERVE_FLOOD)
        while (send(fd, text, strlen(text), MSG_NOSIGNAL) > 0)
            continue;
    if (how == SERVE_HOLD)
        sleep(30);
    if (how == SERVE_RESET) {
        struct linger now = { 1, 0 };
        usleep(50000); /* what was sent arrives first */
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }
}

static inline void server_start(struct server *s, const char *const *texts, size_t n, enum serve how)
{
    server_listen(s);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid > 0)
        return;
    alarm(60);
    for (size_t i = 0;; i++) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            _exit(1);
        serve_one(fd, texts[i % n], how);
        close(fd);
    }
}

static inline void server_stop(struct server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    close(s->fd);
}

/* ---- a check and its loop ---- */

struct outcome {
    int calls;
    struct err result;
};

static inline void on_outcome(struct op *op, const struct err *result)
{
    struct outcome *o = op->owner;

    o->calls++;
    o->result = *result;
}

/* Runs the loop until nothing is left: the check is over and has closed everything. */
static inline void run_check(uv_loop_t *loop, struct outcome *o)
{
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(o->calls, 1);
    assert_int_equal(op_count(), 0);
    assert_int_equal(uv_loop_close(loop), 0);
}

static inline const char *helper_path(void)
{
    static char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);

    assert_true(n > 0);
    path[n] = '\0';
    *strstr(path, "/tests/unit/") = '\0';
    strcat(path, "/coracle-probe");
    return path;
}
#endif
