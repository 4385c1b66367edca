/* SPDX-License-Identifier: Apache-2.0 */
/* caller_answer - answers in HTTP/1.1, in one piece or several, and the head of an upgrade. */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"

#include <string.h>

static void caller_add_head(struct caller *c, struct buf *b, int http, const char *type, const char *extra)
{
    const char *phrase = llhttp_status_name((llhttp_status_t)http);

    buf_addf(b, "HTTP/1.1 %d %s\r\n", http, phrase);
    if (type != NULL)
        buf_addf(b, "Content-Type: %s\r\n", type);
    buf_addf(b, "X-Content-Type-Options: nosniff\r\n%s%s", extra != NULL ? extra : "",
             c->last ? "Connection: close\r\n" : "");
}

void caller_answer(struct caller *c, int http, const char *type, const char *extra_head, const void *body,
                   size_t n)
{
    struct buf b = BUF_SECRET(SIZE_MAX - 1);

    if (c->state == CALLER_CLOSING || c->state == CALLER_LEAVING)
        return;
    if (!c->parser.request.keep_alive)
        c->last = true;
    c->state = CALLER_SERVED;
    c->source = NULL;
    caller_add_head(c, &b, http, type, extra_head);
    if (http != 304) /* its headers are those of the body that the client has (RFC 9110, 15.4.5) */
        buf_addf(&b, "Content-Length: %zu\r\n", n);
    buf_adds(&b, "\r\n");
    if (c->parser.request.method != METHOD_HEAD)
        buf_add(&b, body, n);
    if (b.failed)
        caller_close(c);
    else
        caller_send(c, b.p, b.n);
    buf_done(&b);
    if (c->state == CALLER_SERVED)
        caller_next(c);
}

void caller_text(struct caller *c, int http, const char *text)
{
    caller_answer(c, http, "text/plain; charset=utf-8", NULL, text, strlen(text));
}

void caller_json(struct caller *c, int http, json_t *body)
{
    char *text = body != NULL ? json_text(body) : NULL;

    json_decref(body);
    if (text != NULL)
        caller_answer(c, http, "application/json", NULL, text, strlen(text));
    else
        caller_text(c, 500, "out of memory\n");
    str_wipe(text);
}

void caller_begin(struct caller *c, int http, const char *type, int64_t length)
{
    struct buf b = BUF_INIT(HTTP_HEAD_MAX);
    char extra[64];

    c->chunked = length < 0 && !c->parser.request.http10;
    if (!c->parser.request.keep_alive || (length < 0 && !c->chunked))
        c->last = true;
    if (length >= 0)
        snprintf(extra, sizeof(extra), "Content-Length: %lld\r\n", (long long)length);
    caller_add_head(c, &b, http, type,
                    length >= 0  ? extra
                    : c->chunked ? "Transfer-Encoding: chunked\r\n"
                                 : "");
    buf_adds(&b, "\r\n");
    caller_send(c, b.p, b.n);
    buf_done(&b);
}

void caller_piece(struct caller *c, const void *p, size_t n)
{
    struct buf b = BUF_SECRET(SIZE_MAX - 1);

    if (n == 0 || c->parser.request.method == METHOD_HEAD)
        return;
    if (c->chunked)
        buf_addf(&b, "%zx\r\n", n);
    buf_add(&b, p, n);
    if (c->chunked)
        buf_adds(&b, "\r\n");
    if (b.failed)
        caller_close(c);
    else
        caller_send(c, b.p, b.n);
    buf_done(&b);
}

void caller_end(struct caller *c)
{
    if (c->chunked && c->parser.request.method != METHOD_HEAD)
        caller_send(c, "0\r\n\r\n", 5);
    c->source = NULL;
    if (c->state == CALLER_SERVED)
        caller_next(c);
}

void caller_upgrade(struct caller *c, const struct buf *head)
{
    if (c->state == CALLER_CLOSING || c->state == CALLER_LEAVING)
        return;
    c->last = true;
    c->state = CALLER_RAW;
    caller_send(c, head->p, head->n);
}
