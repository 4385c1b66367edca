/* SPDX-License-Identifier: Apache-2.0 */
/* coracle-exec --forward NETNS PORT: one connection to a port of a pod's loopback interface, between two
 * pipes. Everything privileged is done before the first byte; then the program continues as user nobody. */
#include "agent/runtime/exec_report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 32 * 1024, CONNECT_MS = 10000, NOBODY = 65534 };

struct flow { /* one direction */
    int from, to;
    char piece[PIECE];
    size_t at, n;
    bool over;
};

static int exec_forward_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

static bool connected(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    int why = 0;
    socklen_t size = sizeof(why);

    if (poll(&p, 1, CONNECT_MS) == 0)
        why = ETIMEDOUT;
    else
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size);
    errno = why;
    return why == 0;
}

/* Like kubelet: the pod's localhost, IPv4 first. */
static int exec_forward_dial(uint16_t port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                               .sin6_port = htons(port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    const struct {
        const struct sockaddr *address;
        socklen_t size;
    } to[] = { { (const struct sockaddr *)&v4, sizeof(v4) }, { (const struct sockaddr *)&v6, sizeof(v6) } };
    int why = 0;

    for (int i = 0; i < 2; i++) {
        int fd = socket(to[i].address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd >= 0 &&
            (connect(fd, to[i].address, to[i].size) == 0 || (errno == EINPROGRESS && connected(fd))))
            return fd;
        if (i == 0) /* the second error usually means that there is no IPv6 */
            why = errno;
        if (fd >= 0)
            close(fd);
    }
    errno = why;
    return -1;
}

static void exec_forward_drop_rights(void)
{
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        exit(exec_forward_fail("give up rights"));
}

/* ---- both directions ---- */

/* A socket is closed for one direction only. */
static void exec_forward_end(struct flow *f)
{
    f->over = true;
    f->n = 0;
    if (shutdown(f->to, SHUT_WR) != 0 && errno == ENOTSOCK)
        close(f->to);
}

static void exec_forward_read_some(struct flow *f)
{
    ssize_t n = read(f->from, f->piece, PIECE);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    f->at = 0;
    f->n = n > 0 ? (size_t)n : 0;
    if (n <= 0)
        exec_forward_end(f);
}

static void write_some(struct flow *f)
{
    ssize_t n = write(f->to, f->piece + f->at, f->n);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        exec_forward_end(f);
        return;
    }
    f->at += (size_t)n;
    f->n -= (size_t)n;
}

static void exec_forward_turn(struct flow flows[2])
{
    struct pollfd p[2];

    for (int i = 0; i < 2; i++) {
        struct flow *f = &flows[i];

        p[i].fd = f->over ? -1 : f->n > 0 ? f->to : f->from;
        p[i].events = f->n > 0 ? POLLOUT : POLLIN;
        p[i].revents = 0;
    }
    if (poll(p, 2, -1) < 0)
        return;
    for (int i = 0; i < 2; i++) {
        if (p[i].revents == 0)
            continue;
        if (flows[i].n > 0)
            write_some(&flows[i]);
        else
            exec_forward_read_some(&flows[i]);
    }
}

int exec_forward(const char *netns, const char *port_text)
{
    static struct flow flows[2];
    long port = strtol(port_text, NULL, 10);
    int ns, fd;

    signal(SIGPIPE, SIG_IGN);
    if (netns[0] != '\0') {
        ns = open(netns, O_RDONLY | O_CLOEXEC);
        if (ns < 0 || setns(ns, CLONE_NEWNET) != 0)
            return exec_forward_fail("enter the pod's network namespace");
        close(ns);
    }
    fd = port > 0 && port < 65536 ? exec_forward_dial((uint16_t)port) : -1;
    if (fd < 0) {
        fprintf(stderr, "port %s of the pod: %s\n", port_text, strerror(errno));
        return 1;
    }
    exec_forward_drop_rights();
    fcntl(EXEC_FORWARD_IN, F_SETFL, O_NONBLOCK);
    fcntl(EXEC_FORWARD_OUT, F_SETFL, O_NONBLOCK);
    flows[0].from = EXEC_FORWARD_IN;
    flows[0].to = flows[1].from = fd;
    flows[1].to = EXEC_FORWARD_OUT;
    while (!flows[0].over || !flows[1].over)
        exec_forward_turn(flows);
    return 0;
}
