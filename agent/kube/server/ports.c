/* SPDX-License-Identifier: Apache-2.0 */
/* ports - the ports that the server listens on.  One that is taken when it begins is tried again. */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <errno.h>
#include <string.h>

enum { LISTEN_BACKLOG = 128, PORTS_AGAIN_MS = 1000 };

static void server_on_caller(uv_stream_t *listener, int status)
{
    struct kube_server *s = listener->data;

    if (status == 0 && !s->closing)
        caller_accept(s, listener, listener == (uv_stream_t *)&s->read_only_port);
}

static enum err_code server_listen(uv_tcp_t *port, const char *address, json_int_t number, struct err *e)
{
    struct sockaddr_storage at;
    int r;

    if (number < 0 || number > UINT16_MAX ||
        (uv_ip4_addr(address, (int)number, (struct sockaddr_in *)&at) != 0 &&
         uv_ip6_addr(address, (int)number, (struct sockaddr_in6 *)&at) != 0))
        return err_set(e, ERR_INVALID, "\"%.64s\", port %lld is not an address", address, (long long)number);
    r = uv_tcp_bind(port, (struct sockaddr *)&at, 0); /* a busy port is reported by uv_listen() */
    if (r == UV_EAFNOSUPPORT && strcmp(address, "::") == 0 &&
        uv_ip4_addr("0.0.0.0", (int)number, (struct sockaddr_in *)&at) == 0)
        r = uv_tcp_bind(port, (struct sockaddr *)&at, 0); /* a kernel without IPv6 */
    if (r == 0)
        r = uv_listen((uv_stream_t *)port, LISTEN_BACKLOG, server_on_caller);
    if (r != 0)
        return err_sys(e, -r, "listen on %s, port %lld", address, (long long)number);
    return ERR_OK;
}

static void server_log_port(const uv_tcp_t *port, const char *text)
{
    struct sockaddr_storage at;
    int n = sizeof(at);

    if (uv_tcp_getsockname(port, (struct sockaddr *)&at, &n) == 0)
        log_info(text,
                 F_I64("port", ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                                              : ((struct sockaddr_in *)&at)->sin_port)));
}

static enum err_code server_listen_all(struct kube_server *s, struct err *e)
{
    const char *address = json_str(s->config, "address");
    json_int_t read_only = json_int(s->config, "readOnlyPort", 0);

    /* As in Go, "0.0.0.0" is every address, also those of IPv6. */
    if (address == NULL || strcmp(address, "0.0.0.0") == 0)
        address = "::";
    if (server_listen(&s->port, address, json_int(s->config, "port", 10250), e) != ERR_OK ||
        (read_only != 0 && server_listen(&s->read_only_port, address, read_only, e) != ERR_OK))
        return e->code;
    server_log_port(&s->port,
                    s->on_request == access_begin ? "the node's port is open" : "the local API is open");
    if (read_only != 0)
        server_log_port(&s->read_only_port, "the port without authentication is open");
    return ERR_OK;
}

static void ports_on_again(uv_timer_t *timer)
{
    struct kube_server *s = timer->data;

    if (!s->closing)
        ports_open(s);
}

static void ports_on_closed(uv_handle_t *handle)
{
    struct kube_server *s = handle->data;

    s->open_handles--;
    if (s->closing)
        kube_server_maybe_free(s);
    else if (s->open_handles == 1) /* the timer is left */
        uv_timer_start(&s->again, ports_on_again, PORTS_AGAIN_MS, 0);
}

void ports_open(struct kube_server *s)
{
    struct err e = { 0 };

    if (s->open_handles == 0) {
        uv_timer_init(s->o.loop, &s->again);
        s->again.data = s;
        s->open_handles = 1;
    }
    uv_tcp_init(s->o.loop, &s->port);
    uv_tcp_init(s->o.loop, &s->read_only_port);
    s->port.data = s->read_only_port.data = s;
    s->open_handles += 2;
    s->listening = true;
    if (server_listen_all(s, &e) == ERR_OK)
        return;
    if (e.sys != EADDRINUSE && e.sys != EADDRNOTAVAIL) {
        log_error("cannot open the node's port", F_ERR(&e));
        return;
    }
    if (!s->busy)
        log_warn("cannot open the node's port yet; will retry", F_ERR(&e));
    s->busy = true;
    uv_close((uv_handle_t *)&s->port, ports_on_closed);
    uv_close((uv_handle_t *)&s->read_only_port, ports_on_closed);
}

void ports_close(struct kube_server *s)
{
    uv_handle_t *handles[] = { (uv_handle_t *)&s->again, (uv_handle_t *)&s->port,
                               (uv_handle_t *)&s->read_only_port };

    for (size_t i = 0; s->open_handles > 0 && i < ARRAY_LEN(handles); i++)
        if ((i == 0 || s->open_handles > 1) && !uv_is_closing(handles[i]))
            uv_close(handles[i], ports_on_closed);
}
