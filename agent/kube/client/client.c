/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/client.h"

#include "agent/kube/client/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX ((size_t)8 << 20)

/* ---- whether the apiserver answers ---- */

static void client_reachable(struct kube_client *c, bool reachable, const char *why)
{
    const bool same = c->reach == (reachable ? REACH_YES : REACH_NO);
    uint64_t now = clock_mono_ms();

    if (c->closed || (same && (strcmp(c->why, why) == 0 || now - c->why_ms < KUBE_REASON_MS)))
        return;
    c->why_ms = now;
    snprintf(c->why, sizeof(c->why), "%s", why);
    c->reach = reachable ? REACH_YES : REACH_NO;
    c->o.on_reachable(reachable, why, c->o.arg);
}

static void client_unauthorized(struct kube_client *c, bool expired)
{
    uint64_t now = clock_mono_ms();

    if (c->closed || (c->anew_ms != 0 && now - c->anew_ms < KUBE_ANEW_MS))
        return;
    c->anew_ms = now;
    c->o.on_unauthorized(expired, c->o.arg);
}

/* `broken`: the connection ended during the answer. Whether the apiserver is reachable is unknown until the
 * next request. */
static void client_learn(struct kube_client *c, const struct kube_request *r, const struct err *e,
                         bool broken)
{
    const bool expired = c->access != NULL && kube_access_expired(c->access);

    if (r->http == 0) {
        if (e->code == ERR_OK || e->code == ERR_CANCELLED)
            return;
        c->counts.failed++;
        client_reachable(c, false, e->text);
        if (expired)
            client_unauthorized(c, true);
        return;
    }
    if (r->http == 429)
        c->counts.put_off++;
    else if (r->http >= 400 && r->http != 404 && r->http != 409 && r->http != 410)
        c->counts.refused++;
    if (!broken)
        client_reachable(c, true, "");
    if (r->http == 401)
        client_unauthorized(c, expired);
}

/* ---- the calls ---- */

static void client_pump(struct kube_client *c);

static void client_on_timer_closed(uv_handle_t *handle)
{
    struct kube_client *c = handle->data;

    free(c->user_agent);
    free(c);
}

static void client_on_sockets_closed(struct kube_sockets *s)
{
    struct kube_client *c = container_of(s, struct kube_client, sockets);

    uv_close((uv_handle_t *)&c->pace_timer, client_on_timer_closed);
}

static void client_free_if_done(struct kube_client *c)
{
    if (!c->closed || !TAILQ_EMPTY(&c->waiting) || !TAILQ_EMPTY(&c->running) || c->sockets.on_closed != NULL)
        return;
    kube_access_unref(c->access);
    c->access = NULL;
    kube_sockets_close(&c->sockets, client_on_sockets_closed);
}

static unsigned *client_count_of(struct kube_client *c, const struct kube_call *call)
{
    return call->on_line != NULL ? &c->counts.streams : &c->counts.under_way;
}

static void call_unlink(struct kube_call *call)
{
    struct kube_client *c = call->c;

    if (call->state == CALL_WAITS) {
        TAILQ_REMOVE(&c->waiting, call, link);
        c->counts.waiting--;
    } else if (call->state == CALL_RUNS) {
        TAILQ_REMOVE(&c->running, call, link);
        (*client_count_of(c, call))--;
    }
    call->state = CALL_OVER;
}

/* The operation's result is *e; done follows on a later turn. */
static void call_end(struct kube_call *call, const struct err *e)
{
    struct kube_request *r = call->r;

    if (call->state == CALL_RUNS && !call->tallied)
        kube_tally_add(&call->c->tally, call->method, 0);
    call_unlink(call);
    r->call = NULL;
    kube_call_free(call);
    op_finish(&r->op, e);
}

static void call_over(struct kube_call *call, CURLcode code)
{
    struct kube_request *r = call->r;
    struct kube_client *c = call->c;
    struct err e = { 0 };
    bool broken;

    kube_call_result(call, code, &e);
    broken = code != CURLE_OK && !call->ended && call->failure.code == ERR_OK;
    call_end(call, &e);
    client_learn(c, r, &e, broken);
}

/* Cancelled, or past its deadline; libcurl is not running. */
static void call_give_up(struct kube_call *call)
{
    struct kube_request *r = call->r;
    struct kube_client *c = call->c;
    struct err why = err_kept_get(&r->op.why);

    if (why.code == ERR_DEADLINE && call->local_port != 0)
        kube_sockets_give_up(&c->sockets, call->local_port, call->sent_ms);
    /* A request that waits for credentials does not show whether the apiserver is reachable. */
    if (why.code == ERR_DEADLINE && call->state == CALL_RUNS)
        client_learn(c, r, &why, false);
    call_end(call, NULL); /* op.why is the result */
}

/* Any call of the connection will do. */
static enum silence_asked client_on_silent(struct kube_sockets *s, int local_port, int fd)
{
    struct kube_client *c = container_of(s, struct kube_client, sockets);
    struct kube_call *call;

    TAILQ_FOREACH (call, &c->running, link) {
        enum silence_asked asked =
            call->local_port == local_port && !call->doomed ? kube_call_ping(call, fd) : SILENCE_DEAF;

        if (asked != SILENCE_DEAF)
            return asked;
    }
    return SILENCE_DEAF;
}

static struct kube_call *client_doomed(struct kube_calls *calls)
{
    struct kube_call *call;

    TAILQ_FOREACH (call, calls, link)
        if (call->doomed)
            return call;
    return NULL;
}

static void client_on_turn(struct kube_sockets *s)
{
    struct kube_client *c = container_of(s, struct kube_client, sockets);
    struct kube_call *call;
    CURLMsg *m;
    int left;

    /* Callbacks below may cancel requests, and close the client: all of that waits. */
    s->inside = true;
    while ((m = curl_multi_info_read(s->multi, &left)) != NULL) {
        CURLcode code = m->data.result;
        void *of = NULL;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &of);
        call_over(of, code);
    }
    while ((call = client_doomed(&c->running)) != NULL || (call = client_doomed(&c->waiting)) != NULL)
        call_give_up(call);
    s->inside = false;
    client_pump(c);
    client_free_if_done(c);
}

static bool client_has_room(struct kube_client *c, const struct kube_call *call)
{
    return *client_count_of(c, call) < (call->on_line != NULL ? KUBE_STREAMS_MAX : KUBE_REQUESTS_MAX);
}

/* A stream that is not on a connection yet. */
static bool client_is_connecting(const struct kube_client *c)
{
    const struct kube_call *call;

    TAILQ_FOREACH (call, &c->running, link)
        if (call->on_line != NULL && call->local_port == 0)
            return true;
    return false;
}

static void client_on_token(uv_timer_t *timer)
{
    client_pump(timer->data);
}

/* Whether it is this call's turn. *short_of_tokens: one before it waits already. */
static bool client_has_token(struct kube_client *c, struct kube_call *call, bool *short_of_tokens)
{
    uint64_t wait_ms = 0;

    if (!call->paced)
        return true;
    if (!*short_of_tokens && (wait_ms = kube_pace_take(&c->pace, clock_boot().ns)) == 0)
        return true;
    if (!*short_of_tokens)
        uv_timer_start(&c->pace_timer, client_on_token, wait_ms, 0);
    *short_of_tokens = call->held = true;
    op_no_deadline(&call->r->op);
    return false;
}

/* Sends waiting requests, as far as there is room. */
static void client_pump(struct kube_client *c)
{
    struct kube_call *call, *next;
    bool short_of_tokens = false;

    if (c->sockets.inside || c->closed || c->access == NULL)
        return;
    TAILQ_FOREACH_SAFE (call, &c->waiting, link, next) {
        struct err e = { 0 };

        if (!client_has_room(c, call) || (call->on_line != NULL && c->two && client_is_connecting(c)) ||
            !client_has_token(c, call, &short_of_tokens))
            continue;
        if (call->held && call->deadline_ms > 0)
            op_deadline(&call->r->op, call->deadline_ms);
        call->access = kube_access_ref(c->access);
        if (kube_call_send(call, &e) != ERR_OK) {
            call_end(call, &e);
            continue;
        }
        call_unlink(call);
        call->state = CALL_RUNS;
        TAILQ_INSERT_TAIL(&c->running, call, link);
        (*client_count_of(c, call))++;
        c->counts.requests++;
    }
}

/* ---- requests ---- */

static void request_on_abort(struct op *op)
{
    struct kube_request *r = container_of(op, struct kube_request, op);
    struct kube_call *call = r->call;
    struct kube_client *c;

    if (call == NULL)
        return; /* over already */
    c = call->c;
    call->doomed = true;
    if (c->sockets.inside)
        return; /* at the end of this turn */
    call_give_up(call);
    client_pump(c);
    client_free_if_done(c);
}

static void request_on_done(struct op *op, const struct err *result)
{
    struct kube_request *r = container_of(op, struct kube_request, op);
    json_t *answer = r->answer; /* *r is the owner's from now on */

    r->user_done(op, result);
    json_decref(answer);
}

static enum err_code call_new(struct kube_call **ret, struct kube_client *c,
                              const struct kube_request_spec *spec, struct err *e)
{
    struct kube_call *call = calloc(1, sizeof(*call));
    size_t max = spec->answer_max != 0 ? spec->answer_max : KUBE_ANSWER_MAX;

    if (call == NULL)
        return err_nomem(e);
    call->c = c;
    call->on_line = spec->on_line;
    call->on_head = spec->on_head;
    call->deadline_ms = spec->deadline_ms;
    call->paced = !spec->unpaced && spec->on_line == NULL;
    call->method = strdup(spec->method);
    call->path = strdup(spec->path);
    snprintf(call->content_type, sizeof(call->content_type), "Content-Type: %s",
             spec->content_type != NULL ? spec->content_type : "application/json");
    buf_init(&call->body, BODY_MAX);
    buf_init(&call->answer, max);
    kube_lines_init(&call->lines, max);
    if (spec->body != NULL)
        json_add_text(&call->body, spec->body, false, 0);
    if (call->method == NULL || call->path == NULL)
        err_nomem(e);
    else if (call->body.failed)
        err_set(e, ERR_EXHAUSTED, "the body has more than %zu bytes, or memory is exhausted", BODY_MAX);
    if (e->code != ERR_OK) {
        kube_call_free(call);
        return e->code;
    }
    *ret = call;
    return ERR_OK;
}

void kube_request_start(struct kube_request *r, struct kube_client *c, const struct kube_request_spec *spec,
                        op_done_fn done, void *owner)
{
    struct kube_call *call = NULL;
    struct err e = { 0 };

    *r = (struct kube_request){ .user_done = done };
    op_init(&r->op, c->o.loop, "apiserver request", spec->deadline_ms, request_on_abort, request_on_done,
            owner);
    op_set_subject(&r->op, spec->subject != NULL ? spec->subject : spec->path);
    if (c->closed) {
        err_set(&e, ERR_CANCELLED, "the client is closed");
        op_finish(&r->op, &e);
        return;
    }
    if (call_new(&call, c, spec, &e) != ERR_OK || call == NULL) {
        op_finish(&r->op, &e);
        return;
    }
    call->r = r;
    r->call = call;
    TAILQ_INSERT_TAIL(&c->waiting, call, link);
    c->counts.waiting++;
    client_pump(c);
}

void kube_request_cancel(struct kube_request *r)
{
    op_cancel(&r->op);
}

/* ---- the client ---- */

enum err_code kube_client_credentials(struct kube_client *c, const json_t *credentials, struct err *e)
{
    struct kube_access *a = NULL;

    if (kube_access_new(&a, credentials, c->user_agent, e) != ERR_OK)
        return e->code;
    kube_tally_server(&c->tally, c->access != NULL ? c->access->host : NULL, a->host);
    kube_access_unref(c->access);
    c->access = a;
    c->anew_ms = 0; /* a 401 of these is news */
    client_pump(c);
    return ERR_OK;
}

void kube_client_pace(struct kube_client *c, int64_t qps, int64_t burst)
{
    c->pace = (struct kube_pace){ .rate = qps > 0 ? (double)qps : KUBE_QPS,
                                  .burst = burst > 0 ? (double)burst : KUBE_BURST };
}

struct kube_client_counts kube_client_counts(const struct kube_client *c)
{
    return c->counts;
}

enum err_code kube_client_open(struct kube_client **ret, const struct kube_client_options *o, struct err *e)
{
    struct kube_client *c = calloc(1, sizeof(*c));

    if (c == NULL || (c->user_agent = strdup(o->user_agent)) == NULL) {
        free(c);
        return err_nomem(e);
    }
    c->o = *o;
    TAILQ_INIT(&c->waiting);
    TAILQ_INIT(&c->running);
    if (curl_global_init(CURL_GLOBAL_SSL) != CURLE_OK ||
        kube_sockets_open(&c->sockets, o->loop, client_on_turn, e) != ERR_OK) {
        free(c->user_agent);
        free(c);
        return e->code != ERR_OK ? e->code : err_set(e, ERR_INTERNAL, "libcurl cannot be used");
    }
    uv_timer_init(o->loop, &c->pace_timer);
    c->pace_timer.data = c;
    c->sockets.on_silent = client_on_silent;
    c->sockets.ping_ms = o->ping_ms != 0 ? o->ping_ms : KUBE_PING_MS;
    c->sockets.pong_ms = o->pong_ms != 0 ? o->pong_ms : KUBE_PONG_MS;
    *ret = c;
    return ERR_OK;
}

void kube_client_close(struct kube_client *c)
{
    struct kube_call *call, *next;

    if (c == NULL || c->closed)
        return;
    c->closed = true;
    uv_timer_stop(&c->pace_timer);
    TAILQ_FOREACH_SAFE (call, &c->waiting, link, next)
        op_cancel(&call->r->op);
    TAILQ_FOREACH_SAFE (call, &c->running, link, next)
        op_cancel(&call->r->op);
    if (!c->sockets.inside)
        client_free_if_done(c);
}
