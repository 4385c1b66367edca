/* SPDX-License-Identifier: Apache-2.0 */
/* reflector_answer - handles lists, events and ends of watches: their objects, and the next step. */
#include "agent/kube/client/reflect.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_SHORT_MS 1000 /* client-go's */
/* A watch that the server does not end itself. */
#define WATCH_GRACE_S 30

/* ---- objects ---- */

struct object_name {
    const char *namespace_, *name, *uid, *version;
};

static bool object_name_of(const json_t *object, struct object_name *ret)
{
    const json_t *m = json_object_get(object, "metadata");

    ret->namespace_ = json_str(m, "namespace") != NULL ? json_str(m, "namespace") : "";
    ret->name = json_str(m, "name");
    ret->uid = json_str(m, "uid") != NULL ? json_str(m, "uid") : "";
    ret->version = json_str(m, "resourceVersion");
    return ret->name != NULL && *ret->name != '\0' && strchr(ret->namespace_, '/') == NULL;
}

static void take_version(struct kube_reflector *r, const char *version)
{
    if (version != NULL && *version != '\0' && strlen(version) < sizeof(r->version))
        snprintf(r->version, sizeof(r->version), "%s", version);
}

static void tell_gone(struct kube_reflector *r, struct known_object *o)
{
    char *key = strdup(o->key), *slash = key != NULL ? strchr(key, '/') : NULL, *uid = take_ptr(&o->uid);

    known_remove(&r->known, o);
    if (slash != NULL) {
        *slash = '\0';
        r->o.on_gone(key, slash + 1, uid, r->o.arg);
    }
    free(key);
    free(uid);
}

static bool reflector_has_room(struct kube_reflector *r, const struct object_name *n)
{
    if (known_count(&r->known) < r->o.objects_max)
        return true;
    if (!r->full)
        log_warn("the apiserver has more objects than are kept", F_STR("what", r->subject),
                 F_U64("taken", r->o.objects_max), F_STR("left", n->name));
    r->full = true;
    return false;
}

static void reflector_put(struct kube_reflector *r, json_t *object, const struct object_name *n)
{
    struct known_object *o = known_find(&r->known, n->namespace_, n->name);

    if (o != NULL && strcmp(o->uid, n->uid) != 0) { /* its end was missed */
        tell_gone(r, o);
        o = NULL;
    }
    if (r->closed || (o == NULL && !reflector_has_room(r, n)))
        return;
    if (o == NULL)
        o = known_add(&r->known, n->namespace_, n->name, n->uid);
    if (o == NULL) {
        log_warn("ignoring an object: out of memory", F_STR("what", r->subject), F_STR("name", n->name));
        return;
    }
    o->seen = r->known.set;
    r->o.on_put(object, r->o.arg);
}

/* All of a set is here. True: it is believed. */
static bool reflector_set_over(struct kube_reflector *r)
{
    struct known_object *o;

    bool expected = known_count(&r->known) > 0 || (r->o.expected && !r->synced);

    if (!r->confirming && expected && known_count_set(&r->known) == 0) {
        log_warn("the apiserver suddenly lists no objects; requesting the list again",
                 F_STR("what", r->subject), F_U64("known", known_count(&r->known)));
        r->confirming = r->consistent = true;
        return false;
    }
    r->confirming = r->consistent = false;
    while (!r->closed && (o = known_missing(&r->known)) != NULL)
        tell_gone(r, o);
    r->full = false;
    r->synced = true;
    if (!r->closed)
        r->o.on_synced(r->o.arg);
    if (!r->closed)
        reflector_works(r);
    return true;
}

/* ---- a list's answer ---- */

static void name_kind(json_t *object, const char *kind, const char *version)
{
    size_t n = kind != NULL ? strlen(kind) : 0;

    /* Items of a list do not name their kind. */
    if (json_str(object, "kind") == NULL && n > 4 && strcmp(kind + n - 4, "List") == 0)
        json_object_set_new(object, "kind", json_stringn(kind, n - 4));
    if (json_str(object, "apiVersion") == NULL && version != NULL)
        json_object_set_new(object, "apiVersion", json_string(version));
}

static void take_list(struct kube_reflector *r, const json_t *list)
{
    const json_t *m = json_object_get(list, "metadata");
    const char *more = json_str(m, "continue");
    json_t *item;
    size_t i;

    json_array_foreach (json_object_get(list, "items"), i, item) {
        struct object_name n;

        if (r->closed || !object_name_of(item, &n))
            continue;
        name_kind(item, json_str(list, "kind"), json_str(list, "apiVersion"));
        reflector_put(r, item, &n);
    }
    free(r->more);
    r->more = more != NULL && *more != '\0' ? strdup(more) : NULL;
    if (r->closed || r->more != NULL) {
        reflector_go(r); /* the next page */
        return;
    }
    take_version(r, json_str(m, "resourceVersion"));
    if (reflector_set_over(r))
        r->state = REFLECT_WATCH;
    reflector_go(r);
}

static bool is_version_too_large(const json_t *status)
{
    const json_t *causes = json_object_get(json_object_get(status, "details"), "causes"), *cause;
    size_t i;

    json_array_foreach (causes, i, cause)
        if (str_eq(json_str(cause, "reason"), "ResourceVersionTooLarge"))
            return true;
    return false;
}

static void list_failed(struct kube_reflector *r, const struct err *why)
{
    bool anew = r->request.http == 410 || is_version_too_large(r->request.answer);

    free(take_ptr(&r->more)); /* from its beginning */
    if (anew && !r->consistent) {
        r->consistent = true; /* at once: only the version was wrong */
        reflector_go(r);
        return;
    }
    reflector_report_trouble(r, why, r->request.http);
    reflector_pause(r, reflector_first(r), r->request.retry_after_ms);
}

static void list_done(struct kube_reflector *r, const struct err *result)
{
    const json_t *items = json_object_get(r->request.answer, "items");
    struct err e = *result;

    if (e.code == ERR_OK && items != NULL && !json_is_array(items) && !json_is_null(items))
        err_set(&e, ERR_INTERNAL, "%s: the answer is not a list", r->subject);
    if (e.code == ERR_OK &&
        json_str(json_object_get(r->request.answer, "metadata"), "resourceVersion") == NULL)
        err_set(&e, ERR_INTERNAL, "%s: the list has no resourceVersion", r->subject);
    if (e.code == ERR_OK)
        take_list(r, r->request.answer);
    else
        list_failed(r, &e);
}

/* ---- a watch's events ---- */

/* The server keeps a watch open for longer than requested, or does not send the initial events. */
static void reflector_stalled(uv_timer_t *timer)
{
    struct kube_reflector *r = timer->data;

    if (r->state == REFLECT_WATCH_LIST) {
        log_warn("the apiserver does not finish the initial events of a watch; using lists instead",
                 F_STR("what", r->subject));
        r->no_watch_list = true;
    }
    kube_request_cancel(&r->request);
}

void reflector_on_head(void *owner)
{
    struct kube_reflector *r = owner;

    if (r->closed)
        return;
    if (r->state == REFLECT_WATCH_LIST)
        uv_timer_start(&r->timer, reflector_stalled, KUBE_WATCH_LIST_MS, 0);
    else
        uv_timer_start(&r->timer, reflector_stalled, (uint64_t)(r->timeout_s + WATCH_GRACE_S) * 1000, 0);
    if (r->state == REFLECT_WATCH)
        reflector_works(r);
}

static void bookmark(struct kube_reflector *r, const json_t *object)
{
    const json_t *m = json_object_get(object, "metadata");
    const char *end = json_str(json_object_get(m, "annotations"), "k8s.io/initial-events-end");

    take_version(r, json_str(m, "resourceVersion"));
    if (r->state != REFLECT_WATCH_LIST || !str_eq(end, "true"))
        return;
    uv_timer_start(&r->timer, reflector_stalled, (uint64_t)(r->timeout_s + WATCH_GRACE_S) * 1000, 0);
    if (reflector_set_over(r))
        r->state = REFLECT_WATCH; /* the same stream continues */
}

static void watch_error(struct kube_reflector *r, const json_t *object)
{
    r->stream_http = (int)json_int(object, "code", 500);
    kube_status_err(object, 0, &r->stream_error);
    r->expired = r->stream_http == 410;
}

static void deleted(struct kube_reflector *r, const struct object_name *n)
{
    struct known_object *o = known_find(&r->known, n->namespace_, n->name);

    /* The deletion of an older version than the known one has no meaning. */
    if (o != NULL && strcmp(o->uid, n->uid) == 0)
        tell_gone(r, o);
}

bool reflector_on_line(json_t *line, void *owner)
{
    struct kube_reflector *r = owner;
    const char *type = json_str(line, "type");
    json_t *object = json_object_get(line, "object");
    struct object_name n;

    if (r->closed)
        return false;
    r->events++;
    if (r->state == REFLECT_WATCH_LIST)
        uv_timer_start(&r->timer, reflector_stalled, KUBE_WATCH_LIST_MS, 0);
    if (str_eq(type, "BOOKMARK")) {
        bookmark(r, object);
        return !r->closed && !r->confirming;
    }
    if (str_eq(type, "ERROR")) {
        watch_error(r, object);
        return false;
    }
    if (type == NULL || !object_name_of(object, &n)) {
        err_set(&r->stream_error, ERR_INTERNAL, "%s: an event without a type or a name", r->subject);
        return false;
    }
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        reflector_put(r, object, &n);
    else if (strcmp(type, "DELETED") == 0)
        deleted(r, &n);
    /* Events of an initial set have old versions; its bookmark has the right one. */
    if (r->state == REFLECT_WATCH)
        take_version(r, n.version);
    return !r->closed;
}

/* ---- a watch's end ---- */

static bool is_refused(const struct kube_reflector *r, const struct err *why)
{
    return r->request.http == 429 || (r->request.http == 0 && why->sys == ECONNREFUSED);
}

/* The stream had begun, and ended: by its timeout, by a restart of the server, or with an error. */
static void watch_ended(struct kube_reflector *r, const struct err *why)
{
    bool brief = clock_mono_ms() - r->began_ms < WATCH_SHORT_MS;

    if (r->confirming || r->state == REFLECT_WATCH_LIST) {
        /* Before its initial events were complete: a list, as client-go does. */
        if (!r->confirming)
            reflector_report_trouble(r, r->stream_error.code != ERR_OK ? &r->stream_error : why,
                                     r->request.http);
        r->state = REFLECT_LIST;
        if (r->expired)
            r->consistent = true;
        if (r->confirming)
            reflector_go(r);
        else
            reflector_pause(r, REFLECT_LIST, 0);
        return;
    }
    if (r->expired || r->stream_error.code != ERR_OK || why->code == ERR_INTERNAL) {
        if (!r->expired)
            reflector_report_trouble(r, r->stream_error.code != ERR_OK ? &r->stream_error : why,
                                     r->stream_http);
        reflector_pause(r, r->stream_http == 429 ? REFLECT_WATCH : reflector_first(r), 0);
        return;
    }
    if (brief && r->events == 0)
        reflector_pause(r, reflector_first(r), 0);
    else if (brief)
        reflector_rest(r, REFLECT_WATCH);
    else
        reflector_go(r);
}

static void watch_failed(struct kube_reflector *r, const struct err *why)
{
    int http = r->request.http;

    if (http == 410) { /* as ERROR 410 */
        if (r->state == REFLECT_WATCH_LIST)
            r->consistent = true;
        reflector_pause(r, reflector_first(r), r->request.retry_after_ms);
        return;
    }
    if (r->state == REFLECT_WATCH_LIST && (http == 400 || http == 422)) {
        r->no_watch_list = true;
        r->state = REFLECT_LIST;
        reflector_go(r);
        return;
    }
    reflector_report_trouble(r, why, http);
    if (is_version_too_large(r->request.answer))
        r->consistent = true;
    reflector_pause(r, is_refused(r, why) ? r->state : reflector_first(r), r->request.retry_after_ms);
}

void reflector_answered(struct kube_reflector *r, const struct err *result)
{
    if (r->state == REFLECT_LIST)
        list_done(r, result);
    else if (r->request.http == 200 || result->code == ERR_CANCELLED)
        watch_ended(r, result);
    else
        watch_failed(r, result);
}
