/* SPDX-License-Identifier: Apache-2.0 */
/* call - requests of the parts, and messages to the daemon. */
#include "agent/kube/sync/internal.h"

#include "base/backoff.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdarg.h>
#include <string.h>

static void sync_call_done(struct op *op, const struct err *result)
{
    struct kube_request *r = container_of(op, struct kube_request, op);
    struct sync_call *c = container_of(r, struct sync_call, request);
    struct kube_sync *s = c->sync;
    const struct err error = *result;
    const struct sync_answer a = {
        .error = &error, .http = r->http, .object = r->answer, .retry_after_ms = r->retry_after_ms
    };

    c->busy = false;
    TAILQ_REMOVE(&s->calls, c, link);
    /* A part may free the memory of its call. */
    c->done(c->owner, &a);
    s->on_over(s);
}

void sync_call(struct kube_sync *s, struct sync_call *c, const struct kube_request_spec *spec,
               void (*done)(void *owner, const struct sync_answer *a), void *owner)
{
    struct kube_request_spec full = *spec;

    if (s->closing)
        return;
    if (full.deadline_ms == 0)
        full.deadline_ms = SYNC_DEADLINE_MS;
    *c = (struct sync_call){ .sync = s, .done = done, .owner = owner, .busy = true };
    TAILQ_INSERT_TAIL(&s->calls, c, link);
    state_part_count(s->state, &full);
    kube_request_start(&c->request, s->o.client, &full, sync_call_done, c);
}

void sync_call_cancel(struct sync_call *c)
{
    if (c->busy)
        kube_request_cancel(&c->request);
}

/* RFC 3986: unreserved characters stay, all others are escaped. */

char *sync_path(const char *prefix, ...)
{
    buf_auto b = BUF_INIT(4096);
    const char *part;
    va_list ap;

    buf_adds(&b, prefix);
    va_start(ap, prefix);
    while ((part = va_arg(ap, const char *)) != NULL) {
        buf_addc(&b, '/');
        percent_add(&b, part);
    }
    va_end(ap);
    return b.failed ? NULL : buf_detach(&b);
}

uint64_t sync_wait_ms(const struct sync_answer *a, uint64_t *last_ms, uint64_t first_ms, uint64_t most_ms)
{
    /* A date of a server whose clock is an hour ahead must not stop heart-beats for an hour. */
    const uint64_t asked_ms =
        a->retry_after_ms < KUBE_RETRY_AFTER_MS ? a->retry_after_ms : KUBE_RETRY_AFTER_MS;

    *last_ms = backoff_next_ms(*last_ms, first_ms, most_ms);
    return asked_ms > *last_ms ? asked_ms : *last_ms;
}

/* A link that is lost, or a daemon that does not read, ends the process elsewhere. */
void sync_send(struct kube_sync *s, json_t *message)
{
    const json_t *object = json_object_get(message, "object"), *meta = json_object_get(object, "metadata");
    struct err e = { 0 };

    if (message == NULL)
        return;
    if (!s->closing && kube_link_send(s->o.link, json_incref(message), -1, &e) == ERR_EXHAUSTED &&
        meta != NULL)
        log_warn("ignoring an object: it is too large", F_STR("kind", json_str(object, "kind")),
                 F_STR("namespace", json_str(meta, "namespace")), F_STR("name", json_str(meta, "name")),
                 F_STR("err", e.text));
    json_decref(message);
}
