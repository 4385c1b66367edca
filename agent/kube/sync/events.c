/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/events.h"

#include "agent/kube/client/pace.h"
#include "agent/kube/decide/event_correlate.h"
#include "agent/kube/sync/internal.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>

struct event_queued {
    char *text;    /* JSON */
    int64_t at_ns; /* wall clock */
    TAILQ_ENTRY(event_queued) link;
};

struct events_part {
    struct kube_sync *sync;
    struct sync_call call;
    struct sync_timer timer;
    struct event_correlator correlator;
    struct kube_pace pace;
    TAILQ_HEAD(, event_queued) queue;
    size_t n;
    struct event_verdict sending; /* event NULL: nothing */
    unsigned tries;
    bool started;
};

/* ---- sending ---- */

static void events_send(void *owner);

static void events_sent(struct events_part *v)
{
    event_verdict_done(&v->sending);
    v->tries = 0;
}

static void events_answered(void *owner, const struct sync_answer *a)
{
    struct events_part *v = owner;
    uint64_t wait_ms;

    if (a->error->code == ERR_CANCELLED || !v->started)
        return;
    if (a->error->code == ERR_OK) {
        event_correlate_sent(&v->correlator, v->sending.key, a->object);
        events_sent(v);
    } else if (v->sending.is_patch && a->error->code == ERR_NOT_FOUND) {
        v->sending.is_patch = false; /* it has expired */
    } else if ((a->http != 0 && a->http != 401 && a->http != 429) || ++v->tries >= EVENTS_TRIES) {
        events_sent(v); /* refused: an event is not worth more */
    } else {
        wait_ms = v->tries <= 1 ? (uint64_t)(EVENTS_RETRY_MS * sync_random()) : EVENTS_RETRY_MS;
        sync_timer_start(v->sync, &v->timer, a->retry_after_ms > wait_ms ? a->retry_after_ms : wait_ms,
                         events_send, v);
        return;
    }
    events_send(v);
}

/* An event of a static pod refers to the name of its mirror, under which users look for it. */
static void events_name(struct events_part *v, json_t *event)
{
    json_t *about = json_object_get(event, "involvedObject");
    const char *name = json_str(about, "name"), *mirror;

    if (!str_eq(json_str(about, "kind"), "Pod") || name == NULL)
        return;
    mirror = pods_part_mirror(v->sync->pods, json_str(about, "namespace"), name, json_str(about, "uid"));
    if (mirror != NULL)
        json_object_set_new(about, "name", json_string(mirror));
}

/* The next of the queue that is to be sent; false: none. */
static bool events_next(struct events_part *v)
{
    struct event_queued *q;

    while (v->sending.event == NULL && (q = TAILQ_FIRST(&v->queue)) != NULL) {
        json_t *said = json_loads(q->text, 0, NULL), *event;

        events_name(v, said);
        event = event_object(said, v->sync->node_name, q->at_ns);
        if (event != NULL)
            v->sending = event_correlate(&v->correlator, event, q->at_ns, clock_boot().ns);
        json_decref(event);
        json_decref(said);
        TAILQ_REMOVE(&v->queue, q, link);
        v->n--;
        free(q->text);
        free(q);
    }
    return v->sending.event != NULL;
}

static void events_send(void *owner)
{
    struct events_part *v = owner;
    const json_t *meta;
    uint64_t wait_ms;

    if (!v->started || v->call.busy || v->timer.runs || !events_next(v))
        return;
    wait_ms = kube_pace_take(&v->pace, clock_boot().ns);
    if (wait_ms > 0) {
        sync_timer_start(v->sync, &v->timer, wait_ms, events_send, v);
        return;
    }
    meta = json_object_get(v->sending.event, "metadata");
    str_auto path = sync_path("/api/v1/namespaces", json_str(meta, "namespace"), "events",
                              v->sending.is_patch ? json_str(meta, "name") : NULL, SYNC_PATH_END);
    const struct kube_request_spec spec = {
        .method = v->sending.is_patch ? "PATCH" : "POST",
        .path = path,
        .content_type = v->sending.is_patch ? JSON_PATCH_STRATEGIC : NULL,
        .body = v->sending.is_patch ? v->sending.patch : v->sending.event,
        .subject = json_str(meta, "name"),
        .unpaced = true, /* but by this part */
    };
    if (path != NULL)
        sync_call(v->sync, &v->call, &spec, events_answered, v);
}

/* ---- the part ---- */

void events_part_take(struct events_part *v, const json_t *object)
{
    struct event_queued *q;

    if (object == NULL || v->n >= EVENTS_QUEUE_MAX)
        return;
    q = calloc(1, sizeof(*q));
    if (q == NULL)
        return;
    q->text = json_text(object);
    q->at_ns = clock_wall_ns();
    if (q->text == NULL) {
        free(q);
        return;
    }
    TAILQ_INSERT_TAIL(&v->queue, q, link);
    v->n++;
    events_send(v);
}

struct events_part *events_part_new(struct kube_sync *s)
{
    struct events_part *v = calloc(1, sizeof(*v));

    if (v == NULL)
        return NULL;
    v->sync = s;
    TAILQ_INIT(&v->queue);
    event_correlator_init(&v->correlator);
    return v;
}

void events_part_start(struct events_part *v)
{
    if (v->started)
        return;
    v->started = true;
    v->pace.rate = (double)json_int(v->sync->config, "eventRate", EVENTS_RATE);
    v->pace.burst = (double)json_int(v->sync->config, "eventBurst", EVENTS_BURST);
    if (v->pace.burst < 1)
        v->pace.burst = 1;
    events_send(v);
}

void events_part_anew(struct events_part *v)
{
    sync_timer_stop(v->sync, &v->timer);
    events_send(v);
}

void events_part_stop(struct events_part *v)
{
    v->started = false;
    sync_timer_stop(v->sync, &v->timer);
    sync_call_cancel(&v->call);
}

void events_part_free(struct events_part *v)
{
    struct event_queued *q;

    if (v == NULL)
        return;
    while ((q = TAILQ_FIRST(&v->queue)) != NULL) {
        TAILQ_REMOVE(&v->queue, q, link);
        free(q->text);
        free(q);
    }
    event_verdict_done(&v->sending);
    event_correlator_done(&v->correlator);
    free(v);
}
