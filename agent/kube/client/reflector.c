/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/reflector.h"

#include "agent/kube/client/reflect.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"
#include "base/log.h"
#include "base/scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* client-go's reflector (NewReflectorWithOptions, reflector.watch). */
#define BACKOFF_FIRST_MS 800
#define BACKOFF_MOST_MS 30000
#define BACKOFF_FORGET_MS 120000
#define WATCH_LEAST_S 300
#define PAGE 500
#define LIST_DEADLINE_MS 60000
#define HEAD_DEADLINE_MS 30000

static uint32_t reflector_chance(uint32_t below)
{
    uint32_t n;

    if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != sizeof(n))
        n = (uint32_t)clock_boot().ns;
    return n % below;
}

/* ---- trouble and pauses ---- */

void reflector_works(struct kube_reflector *r)
{
    if (!r->trouble)
        return;
    r->trouble = false;
    if (r->o.on_trouble != NULL)
        r->o.on_trouble(NULL, 0, r->o.arg);
}

void reflector_report_trouble(struct kube_reflector *r, const struct err *why, int http)
{
    r->trouble = true;
    if (r->o.on_trouble != NULL)
        r->o.on_trouble(why, http, r->o.arg);
}

static void reflector_on_pause_over(uv_timer_t *timer)
{
    struct kube_reflector *r = timer->data;

    r->state = r->next;
    reflector_go(r);
}

void reflector_pause(struct kube_reflector *r, enum reflect_state next, uint64_t retry_after_ms)
{
    uint64_t now = clock_boot_ms(), delay;

    if (r->closed)
        return;
    if (now - r->failed_ms > BACKOFF_FORGET_MS)
        r->delay_ms = 0;
    r->failed_ms = now;
    r->delay_ms = backoff_next_ms(
        r->delay_ms, r->o.first_delay_ms != 0 ? r->o.first_delay_ms : BACKOFF_FIRST_MS, BACKOFF_MOST_MS);
    delay = r->delay_ms + reflector_chance((uint32_t)r->delay_ms);
    if (retry_after_ms > KUBE_RETRY_AFTER_MS)
        retry_after_ms = KUBE_RETRY_AFTER_MS;
    if (delay < retry_after_ms)
        delay = retry_after_ms;
    r->state = REFLECT_PAUSE;
    r->next = next;
    uv_timer_start(&r->timer, reflector_on_pause_over, delay, 0);
}

/* This is not a failure, but there is no need to hurry: if a server ends each watch at once, the next one
 * starts a second later. */
void reflector_rest(struct kube_reflector *r, enum reflect_state next)
{
    r->state = REFLECT_PAUSE;
    r->next = next;
    uv_timer_start(&r->timer, reflector_on_pause_over, BACKOFF_FIRST_MS + reflector_chance(BACKOFF_FIRST_MS),
                   0);
}

enum reflect_state reflector_first(const struct kube_reflector *r)
{
    return r->no_watch_list || r->confirming || r->consistent ? REFLECT_LIST : REFLECT_WATCH_LIST;
}

/* ---- requests ---- */

static void add_query(struct buf *b, const char *name, const char *value)
{
    buf_addc(b, strchr(b->p, '?') == NULL ? '?' : '&');
    buf_addf(b, "%s=", name);
    percent_add(b, value);
}

static void reflector_on_done(struct op *op, const struct err *result);

static void reflector_ask(struct kube_reflector *r, struct buf *url)
{
    bool stream = r->state != REFLECT_LIST;
    const struct kube_request_spec spec = { .method = "GET",
                                            .path = url->p,
                                            .subject = r->subject,
                                            .answer_max = stream ? KUBE_EVENT_MAX : KUBE_LIST_MAX,
                                            .deadline_ms = stream ? HEAD_DEADLINE_MS : LIST_DEADLINE_MS,
                                            .on_line = stream ? reflector_on_line : NULL,
                                            .on_head = stream ? reflector_on_head : NULL };

    if (url->failed) { /* a token of the server that is far too long */
        struct err e = { 0 };

        err_nomem(&e);
        reflector_report_trouble(r, &e, 0);
        reflector_pause(r, reflector_first(r), 0);
        return;
    }
    kube_request_start(&r->request, r->o.client, &spec, reflector_on_done, r);
}

static void reflector_list(struct kube_reflector *r)
{
    buf_auto url = BUF_INIT(1 << 16);

    if (r->more == NULL)
        r->known.set++;
    buf_adds(&url, r->path);
    if (r->selector != NULL)
        add_query(&url, "fieldSelector", r->selector);
    if (r->more != NULL)
        add_query(&url, "continue", r->more);
    if (r->consistent || r->version[0] == '\0')
        buf_addf(&url, "%slimit=%d", strchr(url.p, '?') == NULL ? "?" : "&", PAGE);
    if (!r->consistent)
        add_query(&url, "resourceVersion", r->version[0] != '\0' ? r->version : "0");
    reflector_ask(r, &url);
}

static void reflector_watch(struct kube_reflector *r, bool initial)
{
    buf_auto url = BUF_INIT(1 << 16);

    r->timeout_s = WATCH_LEAST_S + (int)reflector_chance(WATCH_LEAST_S);
    r->began_ms = clock_mono_ms();
    r->events = 0;
    r->expired = false;
    r->stream_error = (struct err){ 0 };
    r->stream_http = 0;
    buf_adds(&url, r->path);
    add_query(&url, "allowWatchBookmarks", "true");
    if (r->selector != NULL)
        add_query(&url, "fieldSelector", r->selector);
    if (r->version[0] != '\0')
        add_query(&url, "resourceVersion", r->version);
    if (initial) {
        r->known.set++;
        add_query(&url, "resourceVersionMatch", "NotOlderThan");
        add_query(&url, "sendInitialEvents", "true");
    }
    buf_addf(&url, "&timeoutSeconds=%d&watch=true", r->timeout_s);
    reflector_ask(r, &url);
}

void reflector_go(struct kube_reflector *r)
{
    if (r->closed || op_live(&r->request.op))
        return;
    switch (r->state) {
    case REFLECT_WATCH_LIST:
        reflector_watch(r, true);
        return;
    case REFLECT_LIST:
        reflector_list(r);
        return;
    case REFLECT_WATCH:
        reflector_watch(r, false);
        return;
    case REFLECT_PAUSE:
        return;
    }
}

/* ---- life ---- */

static void reflector_on_timer_closed(uv_handle_t *handle);

static void reflector_free_if_done(struct kube_reflector *r)
{
    if (!r->closed || !r->timer_closed || op_live(&r->request.op))
        return;
    known_done(&r->known);
    free(r->more);
    free(r->path);
    free(r->selector);
    free(r->subject);
    free(r);
}

static void reflector_on_done(struct op *op, const struct err *result)
{
    struct kube_reflector *r = op->owner;
    struct err why = *result;

    uv_timer_stop(&r->timer);
    if (r->closed) {
        reflector_free_if_done(r);
        return;
    }
    reflector_answered(r, &why);
}

enum err_code kube_reflector_open(struct kube_reflector **ret, const struct kube_reflector_options *o,
                                  struct err *e)
{
    struct kube_reflector *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return err_nomem(e);
    r->o = *o;
    r->path = strdup(o->path);
    r->subject = strdup(o->subject);
    r->selector = o->field_selector != NULL ? strdup(o->field_selector) : NULL;
    if (r->path == NULL || r->subject == NULL || (o->field_selector != NULL && r->selector == NULL)) {
        free(r->path);
        free(r->subject);
        free(r->selector);
        free(r);
        return err_nomem(e);
    }
    uv_timer_init(o->loop, &r->timer);
    r->timer.data = r;
    r->state = REFLECT_WATCH_LIST;
    *ret = r;
    reflector_go(r);
    return ERR_OK;
}

static void reflector_on_timer_closed(uv_handle_t *handle)
{
    struct kube_reflector *r = handle->data;

    r->timer_closed = true;
    reflector_free_if_done(r);
}

void kube_reflector_close(struct kube_reflector *r)
{
    if (r == NULL || r->closed)
        return;
    r->closed = true;
    uv_close((uv_handle_t *)&r->timer, reflector_on_timer_closed);
    kube_request_cancel(&r->request);
}

bool kube_reflector_is_synced(const struct kube_reflector *r)
{
    return r->synced;
}
