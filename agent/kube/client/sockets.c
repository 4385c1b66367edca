/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/internal.h"
#include "base/clock.h"

#include <stdlib.h>

static void sockets_turn(struct kube_sockets *s, curl_socket_t fd, int events)
{
    int running;

    s->inside = true;
    curl_multi_socket_action(s->multi, fd, events, &running);
    s->inside = false;
    s->on_turn(s);
}

static void sockets_on_poll(uv_poll_t *poll, int status, int events)
{
    struct client_socket *k = poll->data;
    int what = status < 0 ? CURL_CSELECT_ERR : 0;

    if ((events & UV_READABLE) != 0) {
        k->heard_ms = clock_mono_ms();
        what |= CURL_CSELECT_IN;
    }
    if ((events & UV_WRITABLE) != 0)
        what |= CURL_CSELECT_OUT;
    sockets_turn(k->s, k->fd, what);
}

static void sockets_check_closed(struct kube_sockets *s)
{
    if (s->on_closed != NULL && s->open_handles == 0)
        s->on_closed(s);
}

static void sockets_on_poll_closed(uv_handle_t *handle)
{
    struct client_socket *k = handle->data;

    struct kube_sockets *s = k->s;

    s->open_handles--;
    free(k);
    sockets_check_closed(s);
}

static int sockets_add(struct kube_sockets *s, curl_socket_t fd)
{
    struct client_socket *k = calloc(1, sizeof(*k));

    if (k == NULL)
        return -1;
    if (uv_poll_init(s->loop, &k->poll, fd) != 0) {
        free(k);
        return -1;
    }
    k->s = s;
    k->fd = fd;
    k->born_ms = clock_mono_ms();
    k->poll.data = k;
    s->open_handles++;
    TAILQ_INSERT_TAIL(&s->list, k, link);
    curl_multi_assign(s->multi, fd, k);
    kube_silence_watch(s);
    return 0;
}

static int sockets_on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
    struct kube_sockets *s = arg;
    struct client_socket *k = of_socket;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (k != NULL) {
            TAILQ_REMOVE(&s->list, k, link);
            curl_multi_assign(s->multi, fd, NULL);
            uv_close((uv_handle_t *)&k->poll, sockets_on_poll_closed);
        }
        return 0;
    }
    if (k == NULL) {
        if (sockets_add(s, fd) != 0)
            return -1; /* libcurl ends all transfers */
        k = TAILQ_LAST(&s->list, client_socket_list);
    }
    if (what != CURL_POLL_OUT)
        events |= UV_READABLE;
    if (what != CURL_POLL_IN)
        events |= UV_WRITABLE;
    k->writes = (events & UV_WRITABLE) != 0;
    uv_poll_start(&k->poll, events, sockets_on_poll);
    return 0;
}

static void sockets_on_timeout(uv_timer_t *timer)
{
    sockets_turn(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int sockets_on_timer(CURLM *multi, long ms, void *arg)
{
    struct kube_sockets *s = arg;

    (void)multi;
    if (ms < 0)
        uv_timer_stop(&s->timer);
    else
        uv_timer_start(&s->timer, sockets_on_timeout, (uint64_t)ms, 0);
    return 0;
}

enum err_code kube_sockets_open(struct kube_sockets *s, uv_loop_t *loop,
                                void (*on_turn)(struct kube_sockets *s), struct err *e)
{
    *s = (struct kube_sockets){ .loop = loop, .on_turn = on_turn, .multi = curl_multi_init() };
    TAILQ_INIT(&s->list);
    if (s->multi == NULL)
        return err_nomem(e);
    curl_multi_setopt(s->multi, CURLMOPT_SOCKETFUNCTION, sockets_on_socket);
    curl_multi_setopt(s->multi, CURLMOPT_SOCKETDATA, s);
    curl_multi_setopt(s->multi, CURLMOPT_TIMERFUNCTION, sockets_on_timer);
    curl_multi_setopt(s->multi, CURLMOPT_TIMERDATA, s);
    curl_multi_setopt(s->multi, CURLMOPT_MAXCONNECTS, 8L); /* that are kept for later */
    uv_timer_init(loop, &s->timer);
    uv_timer_init(loop, &s->silence);
    s->timer.data = s->silence.data = s;
    s->open_handles = 2;
    return ERR_OK;
}

static void sockets_on_timer_closed(uv_handle_t *handle)
{
    struct kube_sockets *s = handle->data;

    s->open_handles--;
    sockets_check_closed(s);
}

void kube_sockets_close(struct kube_sockets *s, void (*on_closed)(struct kube_sockets *s))
{
    struct client_socket *k;

    s->on_closed = on_closed;
    s->inside = true;
    curl_multi_cleanup(s->multi);
    while ((k = TAILQ_FIRST(&s->list)) != NULL) { /* those that libcurl did not take back */
        TAILQ_REMOVE(&s->list, k, link);
        uv_close((uv_handle_t *)&k->poll, sockets_on_poll_closed);
    }
    uv_close((uv_handle_t *)&s->timer, sockets_on_timer_closed);
    uv_close((uv_handle_t *)&s->silence, sockets_on_timer_closed);
}
