/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP GET (pkg/probe/http): connects, sends the request, reads the head and the beginning of the body,
 * follows redirects. Texts are kubelet's, around those of Go's net/http client. */
#include "agent/probe/internal.h"

#include "agent/probe/reply.h"
#include "agent/probe/request.h"
#include "base/codec/go_quote.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum http_state { HTTP_DIAL, HTTP_WAIT, HTTP_HELPER, HTTP_DONE };

struct http_run {
    struct probe_run run;
    struct probe_request request;
    struct probe_header *headers; /* copies */
    char *user_agent, *kept_host, *referer;
    bool any_host;
    char first_host[PROBE_HOST_MAX + 1];
    struct probe_url url;
    unsigned redirects;
    struct probe_link *links[PROBE_REDIRECTS_MAX + 1]; /* one per request; freed at the end */
    size_t n_links;
    struct probe_outside outside;
    struct probe_reply reply;
};

static void http_ask(struct http_run *h);

static void http_run_free(struct probe_run *run)
{
    struct http_run *h = (struct http_run *)run;

    for (size_t i = 0; i < h->request.n_headers; i++) {
        free((char *)(uintptr_t)h->headers[i].name);
        free((char *)(uintptr_t)h->headers[i].value);
    }
    free(h->headers);
    free(h->user_agent);
    free(h->kept_host);
    free(h->referer);
    for (size_t i = 0; i < h->n_links; i++)
        free(h->links[i]);
    probe_url_done(&h->url);
    probe_reply_done(&h->reply);
}

static struct probe_check *check_of(struct http_run *h)
{
    return h->run.check;
}

static void http_over(struct http_run *h)
{
    check_of(h)->op.state = HTTP_DONE;
    for (size_t i = 0; i < h->n_links; i++)
        probe_link_close(h->links[i]);
}

/* `Get "http://...": why` */
static void fail_at(struct http_run *h, const char *url, const char *why)
{
    buf_auto b = BUF_INIT(PROBE_TEXT_MAX);

    go_quote(&b, url, strlen(url));
    check_of(h)->status = 0; /* the last request has no response */
    http_over(h);
    probe_verdict(check_of(h), PROBE_FAILURE, "Get %s: %s", b.p, why);
}

static void http_fail(struct http_run *h, const char *why)
{
    buf_auto url = BUF_INIT(2 * PROBE_URL_MAX);

    probe_url_add(&h->url, &url);
    fail_at(h, url.p, why);
}

static void http_no_memory(struct http_run *h)
{
    struct err e = { 0 };

    http_over(h);
    err_nomem(&e);
    op_finish(&check_of(h)->op, &e);
}

static void http_report_timeout(struct http_run *h)
{
    if (h->reply.state == REPLY_HEAD) {
        http_fail(h, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
        return;
    }
    http_over(h);
    check_of(h)->errored = true;
    probe_verdict(check_of(h), PROBE_FAILURE,
                  "context deadline exceeded (Client.Timeout or context cancellation while reading body)");
}

/* ---- a complete response ---- */

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void http_judge(struct http_run *h)
{
    struct probe_check *c = check_of(h);
    const struct probe_reply *r = &h->reply;

    http_over(h);
    if (r->status >= 300 && r->status < 400)
        probe_verdict(c, PROBE_WARNING, "Probe terminated redirects, Response body: %s", r->body.p);
    else if (r->status >= 200 && r->status < 300)
        probe_verdict(c, PROBE_SUCCESS, "%s", r->body.p);
    else
        probe_verdict(c, PROBE_FAILURE, "HTTP probe failed with statuscode: %d", r->status);
}

static void http_follow(struct http_run *h)
{
    struct probe_url next = { 0 };
    struct err e = { 0 };
    buf_auto from = BUF_INIT(2 * PROBE_URL_MAX), why = BUF_INIT(2 * PROBE_URL_MAX);
    const char *location = h->reply.location.p;

    if (probe_url_follow(&next, &h->url, location, &e) != ERR_OK) {
        buf_adds(&why, "failed to parse Location header ");
        go_quote(&why, location, h->reply.location.n < 300 ? h->reply.location.n : 300);
        buf_addf(&why, ": %s", e.text);
        http_fail(h, why.p);
        return;
    }
    if (!h->any_host && strcasecmp(next.host, h->first_host) != 0) {
        probe_url_done(&next);
        http_judge(h); /* a success with a warning */
        return;
    }
    if (++h->redirects >= PROBE_REDIRECTS_MAX) {
        probe_url_done(&next);
        fail_at(h, location, "stopped after 10 redirects");
        return;
    }
    probe_url_add(&h->url, &from);
    free(h->referer);
    h->referer = h->url.https && !next.https ? NULL : buf_detach(&from);
    h->request.referer = h->referer;
    if (probe_url_is_absolute(location))
        h->request.host = NULL;
    h->request.foreign = h->request.foreign || strcasecmp(next.host, h->first_host) != 0;
    probe_url_done(&h->url);
    h->url = next;
    probe_reply_done(&h->reply);
    probe_reply_init(&h->reply);
    probe_link_close(h->n_links > 0 ? h->links[h->n_links - 1] : &(struct probe_link){ 0 });
    http_ask(h);
}

/* Called when the reply has progressed; acts on a complete one. */
static void on_progress(struct http_run *h)
{
    struct probe_check *c = check_of(h);
    char why[sizeof(h->reply.error) + 64];

    if (h->reply.state != REPLY_HEAD)
        c->status = h->reply.status;
    switch (h->reply.state) {
    case REPLY_HEAD:
        return;
    case REPLY_BODY:
    case REPLY_COMPLETE:
        if (is_redirect(h->reply.status) && h->reply.location.n > 0)
            http_follow(h); /* the redirect's body is not needed */
        else if (h->reply.state == REPLY_COMPLETE)
            http_judge(h);
        return;
    case REPLY_BROKEN:
        if (h->reply.status >= 200) {
            http_over(h);
            c->errored = true;
            probe_verdict(c, PROBE_FAILURE, "%s", h->reply.error);
            return;
        }
        snprintf(why, sizeof(why), "%s%s",
                 strcmp(h->reply.error, "EOF") == 0 ? "" : "net/http: HTTP/1.x transport connection broken: ",
                 h->reply.error);
        http_fail(h, why);
        return;
    }
}

/* ---- a direct connection ---- */

static void http_on_data(struct probe_link *l, const char *data, ssize_t n)
{
    struct http_run *h = (struct http_run *)l->check->run;
    buf_auto why = BUF_INIT(1024);

    if (n > 0) {
        probe_reply_feed(&h->reply, data, (size_t)n);
    } else if (n == 0) {
        probe_reply_eof(&h->reply);
    } else {
        probe_link_add_read_error(l, (int)n, &why);
        if (h->reply.state != REPLY_BODY) {
            http_fail(h, why.p);
            return;
        }
        h->reply.state = REPLY_BROKEN;
        snprintf(h->reply.error, sizeof(h->reply.error), "%s", why.p);
    }
    on_progress(h);
}

static void http_on_connect(struct probe_link *l, int status)
{
    struct http_run *h = (struct http_run *)l->check->run;
    buf_auto text = BUF_INIT(PROBE_REQUEST_MAX);
    struct err e = { 0 };
    size_t n;
    char *copy;

    if (status != 0) {
        probe_link_add_dial_error(l, status, &text);
        http_fail(h, text.p);
        return;
    }
    if (probe_request_build(&h->request, &h->url, &text, &e) != ERR_OK) {
        http_fail(h, e.text);
        return;
    }
    n = text.n;
    copy = buf_detach(&text);
    if (copy == NULL) {
        http_no_memory(h);
        return;
    }
    check_of(h)->op.state = HTTP_WAIT;
    probe_link_write(l, copy, n);
    probe_link_read(l);
}

/* ---- through the helper ---- */

static void http_on_outside(struct probe_outside *o, const struct err *result)
{
    struct http_run *h = container_of(o, struct http_run, outside);
    struct probe_check *c = check_of(h);
    buf_auto why = BUF_INIT(2048);

    if (o->proc.out.n > 0)
        probe_reply_feed(&h->reply, o->proc.out.p, o->proc.out.n);
    if (c->op.why.code != ERR_OK) {
        http_report_timeout(h);
        return;
    }
    if (result->code == ERR_OK) {
        if (h->reply.state != REPLY_BROKEN)
            probe_reply_eof(&h->reply);
        on_progress(h);
        return;
    }
    probe_outside_add_error(o, result, &why);
    if (h->reply.state == REPLY_BODY) {
        h->reply.state = REPLY_BROKEN;
        snprintf(h->reply.error, sizeof(h->reply.error), "%s", why.p);
        on_progress(h);
        return;
    }
    c->plain_http = strcmp(why.p, "http: server gave HTTP response to HTTPS client") == 0;
    http_fail(h, why.p);
}

static void ask_outside(struct http_run *h)
{
    buf_auto text = BUF_INIT(PROBE_REQUEST_MAX);
    struct err e = { 0 };

    if (probe_request_build(&h->request, &h->url, &text, &e) != ERR_OK) {
        http_fail(h, e.text);
        return;
    }
    check_of(h)->op.state = HTTP_HELPER;
    probe_outside_start(&h->outside, check_of(h), h->url.https ? "https" : "http", h->url.host, h->url.port,
                        text.p, text.n, http_on_outside);
}

static void http_ask(struct http_run *h)
{
    struct probe_link *l;

    if (h->url.https || !probe_host_is_address(h->url.host)) {
        ask_outside(h);
        return;
    }
    l = calloc(1, sizeof(*l));
    if (l == NULL) {
        http_no_memory(h);
        return;
    }
    h->links[h->n_links++] = l;
    l->on_connect = http_on_connect;
    l->on_data = http_on_data;
    check_of(h)->op.state = HTTP_DIAL;
    probe_link_open(l, check_of(h), h->url.host, h->url.port);
}

static void http_on_abort(struct op *op)
{
    struct probe_check *c = container_of(op, struct probe_check, op);
    struct http_run *h = (struct http_run *)c->run;

    if (op_live(&h->outside.proc.op))
        proc_cancel(&h->outside.proc);
    else
        http_report_timeout(h);
}

/* ---- start ---- */

static enum err_code copy_request(struct http_run *h, const struct probe_http *spec, struct err *e)
{
    h->headers = calloc(spec->n_headers + 1, sizeof(*h->headers));
    h->user_agent = strdup(spec->user_agent);
    if (h->headers == NULL || h->user_agent == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < spec->n_headers; i++) {
        h->request.n_headers++; /* so that it is freed with the others */
        h->headers[i].name = strdup(spec->headers[i].name);
        h->headers[i].value = strdup(spec->headers[i].value != NULL ? spec->headers[i].value : "");
        if (h->headers[i].name == NULL || h->headers[i].value == NULL)
            return err_nomem(e);
    }
    h->request.headers = h->headers;
    h->request.user_agent = h->user_agent;
    if (probe_request_host(&h->request) != NULL) {
        h->kept_host = strdup(probe_request_host(&h->request));
        if (h->kept_host == NULL)
            return err_nomem(e);
        h->request.host = h->kept_host;
    }
    return ERR_OK;
}

void probe_http_start(struct probe_check *c, const struct probe_world *w, const struct probe_http *spec,
                      const char *subject, uint64_t timeout_ms, op_done_fn done, void *owner)
{
    struct http_run *h =
        probe_begin(c, w, sizeof(*h), "http probe", subject, timeout_ms, http_on_abort, done, owner);
    struct err e = { 0 };

    if (h == NULL)
        return;
    h->run.free = http_run_free;
    probe_reply_init(&h->reply);
    h->any_host = spec->any_host;
    if (probe_url_make(&h->url, spec->https, spec->host, spec->port, spec->path, &e) != ERR_OK ||
        copy_request(h, spec, &e) != ERR_OK) {
        http_over(h);
        if (e.code == ERR_INVALID)
            probe_verdict(c, PROBE_FAILURE, "%s", e.text);
        op_finish(&c->op, &e);
        return;
    }
    snprintf(h->first_host, sizeof(h->first_host), "%s", h->url.host);
    http_ask(h);
}
