/* SPDX-License-Identifier: Apache-2.0 */
/* relay - an answer of the status socket for a client, piece by piece: while the client does not read,
 * neither does this. Errors become plain text, as kubelet's are. */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"

struct relay {
    struct caller *caller;
    struct upstream *upstream;
    int http; /* of an error, collected in `body` */
    struct buf body;
    bool begun;
};

static void relay_free(struct relay *r)
{
    upstream_close(r->upstream);
    buf_done(&r->body);
    free(r);
}

static void relay_gone(struct caller *c)
{
    relay_free(c->job);
}

static void relay_drained(struct caller *c)
{
    struct relay *r = c->job;

    upstream_resume(r->upstream);
}

static const struct caller_source relay_source = { .gone = relay_gone, .drained = relay_drained };

const char *relay_message(const json_t *status)
{
    const char *message = json_str(status, "message");

    return message != NULL ? message : "the daemon's answer cannot be understood";
}

void relay_refused(struct caller *c, const struct err *failure, int http, const struct buf *body)
{
    json_auto_t *status = NULL;

    if (failure != NULL) {
        caller_text(c, 503, failure->text);
        return;
    }
    if (json_parse(body->p, body->n, RELAY_ERROR_MAX, &status, "status", ERR_IGNORED) != ERR_OK)
        status = NULL;
    caller_text(c, http, relay_message(status));
}

/* Ends the relay first: the answer may be followed by the next request. */
static void relay_error(struct relay *r, const struct err *failure)
{
    struct caller *c = r->caller;

    c->source = NULL;
    slis_count(c, false);
    if (c->as_is && r->body.n > 0 && failure == NULL)
        caller_answer(c, r->http, "application/json", NULL, r->body.p, r->body.n);
    else
        relay_refused(c, failure, r->http, &r->body);
    relay_free(r);
}

static void relay_on_head(int http, const char *type, int64_t length, bool upgraded, void *owner)
{
    struct relay *r = owner;

    (void)upgraded;
    if (http >= 400) {
        r->http = http;
        return;
    }
    r->begun = true;
    slis_count(r->caller, true);
    caller_begin(r->caller, http, type[0] != '\0' ? type : "text/plain", length);
}

static void relay_on_body(const char *p, size_t n, void *owner)
{
    struct relay *r = owner;
    struct caller *c = r->caller;

    if (r->http != 0) {
        buf_add(&r->body, p, n);
        return;
    }
    caller_piece(c, p, n); /* may free the relay */
    if (c->source == &relay_source && c->high)
        upstream_pause(r->upstream);
}

static void relay_on_end(const struct err *failure, void *owner)
{
    struct relay *r = owner;
    struct caller *c = r->caller;

    if (r->begun && failure != NULL) {
        caller_close(c); /* cut off: the client sees that the end is missing */
    } else if (r->begun) {
        c->source = NULL;
        relay_free(r);
        caller_end(c);
    } else {
        relay_error(r, failure);
    }
}

static const struct upstream_ops relay_ops = { .head = relay_on_head,
                                               .body = relay_on_body,
                                               .end = relay_on_end };

void relay_begin(struct caller *c, const char *target)
{
    struct relay *r = calloc(1, sizeof(*r));
    struct buf request = BUF_INIT(HTTP_HEAD_MAX);
    struct err e = { 0 };

    if (r == NULL) {
        caller_text(c, 500, "out of memory\n");
        return;
    }
    r->caller = c;
    buf_init(&r->body, RELAY_ERROR_MAX);
    buf_addf(&request, "GET %s HTTP/1.1\r\nHost: coracle\r\n\r\n", target);
    r->upstream = upstream_open(c->server, &request, &relay_ops, r, &e);
    if (r->upstream == NULL) {
        relay_free(r);
        slis_count(c, false);
        caller_text(c, 503, e.text);
        return;
    }
    caller_serve(c, &relay_source, r);
}
