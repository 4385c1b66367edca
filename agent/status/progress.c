/* SPDX-License-Identifier: Apache-2.0 */
/* progress - a client that follows the progress of its request: lines of JSON, one per change, at most five
 * per second, the last one being the answer. The connection's timer polls the provider, only for such
 * clients. */
#include "agent/status/internal.h"

#include "base/codec/json.h"

#include <string.h>

/* `text` and a line break. */
static void send_line(struct conn *c, char *text)
{
    const size_t n = strlen(text);

    text[n] = '\n'; /* the zero byte is not sent */
    conn_stream(c, text, n + 1);
    text[n] = '\0';
}

/* Nothing is sent to a client that has not accepted the last line yet. */
static void progress_tick(struct conn *c)
{
    const struct status_provider *p = &c->server->provider;
    json_t *now =
        p->image_progress != NULL && conn_backlog(c) == 0 ? p->image_progress(p->arg, c->reply) : NULL;
    char *text = now != NULL ? json_text(now) : NULL;

    json_decref(now);
    if (text != NULL && !str_eq(text, c->reply->last)) {
        free(c->reply->last);
        c->reply->last = text;
        send_line(c, text);
    } else {
        free(text);
    }
    conn_tick_after(c, STATUS_PROGRESS_MS);
}

static void progress_gone(struct conn *c)
{
    c->source = NULL;
}

static const struct conn_source progress_source = { .gone = progress_gone, .tick = progress_tick };

void progress_begin(struct conn *c)
{
    c->reply->streams = true;
    c->source = &progress_source;
    conn_stream_begin(c, "application/x-ndjson");
    if (c->state != CONN_CLOSING)
        progress_tick(c);
}

void progress_end(struct conn *c, json_t *body)
{
    char *text = body != NULL ? json_text(body) : NULL;

    c->source = NULL;
    json_decref(body);
    if (text == NULL) {
        conn_close(c); /* the client notices that the end is missing */
        return;
    }
    send_line(c, text);
    free(text);
    conn_stream_end(c);
}
