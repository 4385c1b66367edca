/* SPDX-License-Identifier: Apache-2.0 */
/* A check's plain TCP connection, on the loop. */
#include "agent/probe/internal.h"

#include <netinet/in.h>
#include <string.h>

static void probe_link_on_connect(uv_connect_t *request, int status)
{
    struct probe_link *l = container_of(request, struct probe_link, connect);

    if (l->open)
        l->on_connect(l, status);
}

static enum err_code address_of(const struct probe_link *l, struct sockaddr_storage *ret)
{
    *ret = (struct sockaddr_storage){ 0 };
    if (uv_ip4_addr(l->host, (int)l->port, (struct sockaddr_in *)ret) == 0 ||
        uv_ip6_addr(l->host, (int)l->port, (struct sockaddr_in6 *)ret) == 0)
        return ERR_OK;
    return ERR_INVALID;
}

void probe_link_open(struct probe_link *l, struct probe_check *c, const char *host, unsigned port)
{
    struct sockaddr_storage address;
    int status;

    l->check = c;
    l->port = port;
    snprintf(l->host, sizeof(l->host), "%s", host);
    uv_tcp_init(c->op.loop, &l->tcp); /* cannot fail: no socket yet */
    l->tcp.data = l;
    l->open = true;
    status = address_of(l, &address) != ERR_OK
                 ? UV_EINVAL
                 : uv_tcp_connect(&l->connect, &l->tcp, (struct sockaddr *)&address, probe_link_on_connect);
    if (status != 0)
        l->on_connect(l, status);
}

static void probe_link_on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct probe_link *l = container_of(handle, struct probe_link, tcp);

    (void)suggested;
    *buf = uv_buf_init(l->in, sizeof(l->in));
}

static void probe_link_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct probe_link *l = container_of(stream, struct probe_link, tcp);

    if (n == 0 || !l->open) /* EAGAIN */
        return;
    l->on_data(l, buf->base, n == UV_EOF ? 0 : n);
}

void probe_link_read(struct probe_link *l)
{
    int status = uv_read_start((uv_stream_t *)&l->tcp, probe_link_on_room, probe_link_on_read);

    if (status != 0)
        l->on_data(l, NULL, status);
}

static void probe_link_on_written(uv_write_t *request, int status)
{
    struct probe_link *l = container_of(request, struct probe_link, write);

    free(take_ptr(&l->sent));
    if (status == 0 && l->open && l->on_written != NULL)
        l->on_written(l); /* a failed write is reported by the next read */
}

void probe_link_write(struct probe_link *l, char *text, size_t n)
{
    uv_buf_t buf = uv_buf_init(text, (unsigned)n);

    l->sent = text;
    if (uv_write(&l->write, (uv_stream_t *)&l->tcp, &buf, 1, probe_link_on_written) != 0)
        free(take_ptr(&l->sent)); /* reported by the next read */
}

void probe_link_close(struct probe_link *l)
{
    if (!l->open)
        return;
    l->open = false;
    op_close_handle(&l->check->op, (uv_handle_t *)&l->tcp);
}

/* ---- texts ---- */

void probe_link_add_dial_error(const struct probe_link *l, int status, struct buf *out)
{
    char text[PROBE_ERRNO_SIZE];

    buf_adds(out, "dial tcp ");
    probe_add_address(out, l->host, l->port);
    probe_errno(-status, text);
    buf_addf(out, ": connect: %s", text);
}

void probe_link_add_read_error(const struct probe_link *l, int status, struct buf *out)
{
    struct sockaddr_storage local;
    int size = sizeof(local);
    char text[PROBE_ERRNO_SIZE], host[64] = "";
    unsigned port = 0;

    if (uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&local, &size) == 0) {
        if (local.ss_family == AF_INET6) {
            uv_ip6_name((struct sockaddr_in6 *)&local, host, sizeof(host));
            port = ntohs(((struct sockaddr_in6 *)&local)->sin6_port);
        } else {
            uv_ip4_name((struct sockaddr_in *)&local, host, sizeof(host));
            port = ntohs(((struct sockaddr_in *)&local)->sin_port);
        }
    }
    probe_errno(-status, text);
    buf_adds(out, "read tcp ");
    probe_add_address(out, host, port);
    buf_adds(out, "->");
    probe_add_address(out, l->host, l->port);
    buf_addf(out, ": read: %s", text);
}
