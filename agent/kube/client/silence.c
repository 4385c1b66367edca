/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Silent connections. The kernel detects a peer that acknowledges nothing, but a load balancer acknowledges
 * data for a server that it has lost. A stream may legitimately be silent for minutes, so the client pings
 * the peer (ping.c), and closes the connection if it does not answer.
 */
#include "agent/kube/client/internal.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#define LATER_MS 1000 /* the obstacle to a question is gone by then */

static int socket_local_port(const struct client_socket *k)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);

    if (getsockname(k->fd, (struct sockaddr *)&a, &n) != 0)
        return 0;
    if (a.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&a)->sin_port);
    if (a.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
    return 0;
}

/* libcurl reads its end, and each transfer on it learns of it. */
static void socket_shut(const struct client_socket *k)
{
    shutdown(k->fd, SHUT_RDWR);
}

bool kube_sockets_give_up(struct kube_sockets *s, int local_port, uint64_t since_ms)
{
    struct client_socket *k;

    TAILQ_FOREACH (k, &s->list, link) {
        if (socket_local_port(k) != local_port || k->heard_ms >= since_ms)
            continue;
        socket_shut(k);
        return true;
    }
    return false;
}

/* After a sleep of the whole process its timers come before bytes that arrived meanwhile. */
static bool socket_has_news(const struct client_socket *k)
{
    struct pollfd p = { .fd = k->fd, .events = POLLIN };

    return poll(&p, 1, 0) > 0;
}

/* The step that is due on the socket now; the time from now until it is checked again. */
static uint64_t socket_look(struct client_socket *k, uint64_t now)
{
    struct kube_sockets *s = k->s;
    const uint64_t since = k->heard_ms != 0 ? k->heard_ms : k->born_ms;

    if (k->pinged_ms > since) {
        if (now < k->pinged_ms + s->pong_ms)
            return k->pinged_ms + s->pong_ms - now;
        if (!socket_has_news(k))
            socket_shut(k);
        return s->ping_ms;
    }
    if (now < since + s->ping_ms)
        return since + s->ping_ms - now;
    if (k->writes)
        return LATER_MS;
    switch (s->on_silent(s, socket_local_port(k), k->fd)) {
    case SILENCE_ASKED:
        k->pinged_ms = now;
        return s->pong_ms;
    case SILENCE_LATER:
        return LATER_MS;
    case SILENCE_DEAF:
        break;
    }
    return s->ping_ms;
}

static void silence_on_timer(uv_timer_t *timer)
{
    struct kube_sockets *s = timer->data;
    const uint64_t now = clock_mono_ms();
    uint64_t next = UINT64_MAX;
    struct client_socket *k;

    TAILQ_FOREACH (k, &s->list, link) {
        uint64_t wait = socket_look(k, now);

        next = wait < next ? wait : next;
    }
    if (next != UINT64_MAX)
        uv_timer_start(timer, silence_on_timer, next, 0);
}

void kube_silence_watch(struct kube_sockets *s)
{
    if (!uv_is_active((uv_handle_t *)&s->silence))
        uv_timer_start(&s->silence, silence_on_timer, s->ping_ms, 0);
}
