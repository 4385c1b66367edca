/* SPDX-License-Identifier: Apache-2.0 */
/* conn_send - sends on a connection of the status socket: answers, streams, and data of another protocol. */
#include "agent/status/internal.h"

#include <string.h>

struct write {
    uv_write_t req;
    struct conn *conn;
    char *data;
    size_t n;
};

/* ---- writing ---- */

size_t conn_backlog(const struct conn *c)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&c->pipe);
}

void conn_arm(struct conn *c, uint64_t ms)
{
    c->progress = conn_backlog(c);
    uv_timer_start(&c->timer, conn_on_timer, ms, 0);
}

static void conn_on_written(uv_write_t *req, int status)
{
    struct write *w = (struct write *)req;
    struct conn *c = w->conn;

    held_remove(c, w->n);
    explicit_bzero(w->data, w->n); /* it may contain a Secret */
    free(w->data);
    free(w);
    if (c->state == CONN_CLOSING)
        return;
    if (status < 0) {
        conn_close(c);
    } else if (c->source != NULL && c->source->written != NULL) {
        c->source->written(c);
    } else if (c->writes == 0 && c->awaits) {
        c->awaits = false;
        uv_timer_stop(&c->timer);
        conn_next_turn(c);
    } else if (c->writes == 0 && c->state == CONN_ANSWERING && c->reply == NULL && c->source == NULL &&
               !c->asks) {
        conn_next_request(c);
    }
}

/* Takes ownership of `data` (malloc'ed). */
static void send_data(struct conn *c, char *data, size_t n)
{
    struct write *w = calloc(1, sizeof(*w));
    uv_buf_t piece = uv_buf_init(data, (unsigned)n);

    if (w == NULL || c->state == CONN_CLOSING) {
        free(w);
        free(data);
        conn_close(c);
        return;
    }
    w->conn = c;
    w->data = data;
    w->n = n;
    held_add(c, n);
    if (uv_write(&w->req, (uv_stream_t *)&c->pipe, &piece, 1, conn_on_written) != 0) {
        held_remove(c, n);
        free(w);
        free(data);
        conn_close(c);
    }
}

static void send_buf(struct conn *c, struct buf *b)
{
    size_t n = b->n;
    char *data;

    if (b->failed || (data = buf_detach(b)) == NULL) {
        buf_done(b);
        conn_close(c);
        return;
    }
    send_data(c, data, n);
}

/* ---- answers ---- */

static void conn_add_head(struct conn *c, struct buf *b, int http_code, const char *type,
                          const char *extra_head)
{
    buf_addf(b, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s%s", http_code, status_phrase(http_code), type,
             extra_head != NULL ? extra_head : "", c->last ? "Connection: close\r\n" : "");
}

void conn_answer(struct conn *c, int http_code, const char *type, const char *extra_head, const void *body,
                 size_t n)
{
    struct buf b = BUF_SECRET(SIZE_MAX - 1);

    if (!held_room(c, n)) {
        c->server->count.no_room++;
        conn_status(c, 503, status_reason(503), NULL, NULL,
                    "too many answers are pending for other clients of the socket; try again");
        return;
    }
    if (!c->parser.request.keep_alive)
        c->last = true;
    conn_add_head(c, &b, http_code, type, extra_head);
    buf_addf(&b, "Content-Length: %zu\r\n\r\n", n);
    if (c->parser.request.method != METHOD_HEAD)
        buf_add(&b, body, n);
    c->state = CONN_ANSWERING;
    send_buf(c, &b);
    if (c->state == CONN_ANSWERING)
        conn_arm(c, c->server->write_ms);
}

void conn_json(struct conn *c, int http_code, json_t *body)
{
    char *text = body != NULL ? json_dumps(body, c->pretty ? JSON_INDENT(2) : JSON_COMPACT) : NULL;
    size_t n = text != NULL ? strlen(text) : 0;

    json_decref(body);
    if (text == NULL) {
        conn_answer(c, 500, "text/plain; charset=utf-8", NULL, "out of memory\n", strlen("out of memory\n"));
        return;
    }
    text[n] = '\n'; /* for terminals; the zero byte is not sent */
    conn_answer(c, http_code, "application/json", NULL, text, n + 1);
    explicit_bzero(text, n);
    free(text);
}

void conn_status(struct conn *c, int http_code, const char *reason, const char *kind, const char *name,
                 const char *message)
{
    conn_json(c, http_code, status_object(http_code, reason, kind, name, message));
}

void conn_err(struct conn *c, const struct err *e)
{
    int http_code = status_http_code(e->code);

    conn_status(c, http_code, status_reason(http_code), NULL, NULL, e->text);
}

/* ---- streams ---- */

void conn_stream_begin(struct conn *c, const char *type)
{
    struct buf b = BUF_INIT(HTTP_HEAD_MAX);

    c->chunked = !c->parser.request.http10;
    if (!c->parser.request.keep_alive || !c->chunked)
        c->last = true;
    conn_add_head(c, &b, 200, type, c->chunked ? "Transfer-Encoding: chunked\r\n" : NULL);
    buf_adds(&b, "\r\n");
    c->state = CONN_STREAMING;
    uv_timer_stop(&c->timer);
    send_buf(c, &b);
}

void conn_stream(struct conn *c, const void *data, size_t n)
{
    struct buf b = BUF_SECRET(SIZE_MAX - 1);

    if (n == 0 || c->state != CONN_STREAMING)
        return;
    if (c->chunked)
        buf_addf(&b, "%zx\r\n", n);
    buf_add(&b, data, n);
    if (c->chunked)
        buf_adds(&b, "\r\n");
    send_buf(c, &b);
}

void conn_tick_after(struct conn *c, uint64_t ms)
{
    if (c->state == CONN_STREAMING)
        uv_timer_start(&c->timer, conn_on_timer, ms, 0);
}

void conn_stream_end(struct conn *c)
{
    char *end;

    if (c->state != CONN_STREAMING)
        return;
    c->state = CONN_ANSWERING;
    conn_arm(c, c->server->write_ms);
    end = strdup(c->chunked && c->parser.request.method != METHOD_HEAD ? "0\r\n\r\n" : "");
    if (end == NULL)
        conn_close(c);
    else
        send_data(c, end, strlen(end));
}

void conn_next_turn(struct conn *c)
{
    if (c->state != CONN_CLOSING)
        background_ask(&c->server->turns, &c->turn);
}

void conn_await(struct conn *c)
{
    if (c->state == CONN_CLOSING)
        return;
    if (c->writes == 0) {
        conn_next_turn(c);
        return;
    }
    c->awaits = true;
    if (c->finite)
        conn_arm(c, c->server->write_ms);
}

/* ---- another protocol ---- */

void conn_upgrade(struct conn *c, struct buf *head)
{
    c->last = true;
    c->state = CONN_STREAMING;
    uv_timer_stop(&c->timer);
    send_buf(c, head);
}

void conn_frames(struct conn *c, struct buf *b)
{
    if (c->state == CONN_STREAMING)
        send_buf(c, b);
    else
        buf_done(b);
}
