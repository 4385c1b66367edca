/* SPDX-License-Identifier: Apache-2.0 */
/* pod_writer - the requests about pods: one at a time, in the order in which they became necessary. */
#include "agent/kube/sync/pods.h"

#include "agent/kube/decide/pod_merge.h"
#include "agent/kube/decide/seen.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

void pods_queue(struct pods_part *p, struct pod_entry *e)
{
    if (!e->dirty)
        TAILQ_INSERT_TAIL(&p->queue, e, queued);
    e->dirty = true;
    pods_write(p);
}

static void pods_unqueue(struct pods_part *p, struct pod_entry *e)
{
    TAILQ_REMOVE(&p->queue, e, queued);
    e->dirty = false;
}

/* ---- the next step ---- */

static json_t *pods_json(const char *text)
{
    return text != NULL ? json_loads(text, 0, NULL) : NULL;
}

static uint64_t pods_status_hash(const struct our_pod *o)
{
    return o != NULL && o->status != NULL ? seen_text_hash(o->status) ^ o->ended : 0;
}

/* The patch of its status; NULL: none is needed. */
static json_t *pods_patch(const struct pod_entry *e, const struct our_pod *o)
{
    json_t *theirs, *ours, *merged, *patch = NULL;

    if (!e->there || o == NULL || o->status == NULL)
        return NULL;
    if (o->accepted_status == pods_status_hash(o) && str_eq(o->accepted_version, e->version))
        return NULL;
    theirs = pods_json(e->status);
    ours = pods_json(o->status);
    merged = pod_merge(theirs, ours, o->ended);
    if (merged != NULL)
        patch = pod_status_patch(e->uid, theirs, merged);
    json_decref(merged);
    json_decref(ours);
    json_decref(theirs);
    return patch;
}

static struct pod_facts pods_facts(const struct pods_part *p, const struct pod_entry *e,
                                   const struct our_pod *o, const json_t *patch)
{
    json_t *status = pods_json(e->status);
    struct pod_facts f = { .synced = p->reflector != NULL && kube_reflector_is_synced(p->reflector),
                           .node_known =
                               node_part_uid(p->sync->node) != NULL && !node_part_is_leaving(p->sync->node),
                           .there = e->there,
                           .there_is_mirror = e->mirror != NULL,
                           .there_is_leaving = e->leaving,
                           .there_is_final = pod_phase_is_final(json_str(status, "phase")),
                           .there_was_deleted = e->deleted,
                           .ours = o != NULL,
                           .ours_is_static = o != NULL && o->is_static,
                           .ours_ended = o != NULL && o->ended,
                           .same_hash = o != NULL && str_eq(o->hash, e->mirror),
                           .differs = patch != NULL,
                           .told = p->told || e->orphan };

    json_decref(status);
    return f;
}

/* ---- requests ---- */

static void pods_answered(void *owner, const struct sync_answer *a);

static void pods_request(struct pods_part *p, struct pod_entry *e, struct our_pod *o, enum pod_action action,
                         const json_t *body)
{
    str_auto path =
        sync_path("/api/v1/namespaces", e->namespace_, "pods", action != POD_CREATE_MIRROR ? e->name : NULL,
                  action == POD_PATCH ? "status" : NULL, SYNC_PATH_END);
    char subject[600];
    const struct kube_request_spec spec = { .method = action == POD_PATCH    ? "PATCH"
                                                      : action == POD_DELETE ? "DELETE"
                                                                             : "POST",
                                            .path = path,
                                            .content_type = action == POD_PATCH ? JSON_PATCH_STRATEGIC : NULL,
                                            .body = body,
                                            .subject = subject };
    char *uid = strdup(action == POD_DELETE ? e->uid : o != NULL ? o->uid : "");

    if (path == NULL || body == NULL || uid == NULL) {
        free(uid);
        sync_timer_start(p->sync, &p->timer, 1000, pods_write, p);
        return;
    }
    snprintf(subject, sizeof(subject), "pod %s", e->key);
    pods_unqueue(p, e);
    p->writing = e;
    p->writing_uid = uid;
    p->action = action;
    p->writing_status = pods_status_hash(o);
    sync_call(p->sync, &p->call, &spec, pods_answered, p);
}

/* True: a request is under way. */
static bool pods_begin(struct pods_part *p, struct pod_entry *e)
{
    struct our_pod *o = our_pod_of(e);
    json_t *patch = pods_patch(e, o), *body = NULL, *manifest;
    const struct pod_facts f = pods_facts(p, e, o, patch);
    enum pod_action action = pod_decide(&f);

    switch (action) {
    case POD_NOTHING:
        break;
    case POD_PATCH:
        body = json_incref(patch);
        break;
    case POD_DELETE:
        body = delete_now_body(e->uid);
        break;
    case POD_CREATE_MIRROR:
        manifest = o != NULL ? pods_json(o->manifest) : NULL;
        if (manifest != NULL)
            body = mirror_body(manifest, o->hash, p->sync->node_name, node_part_uid(p->sync->node));
        json_decref(manifest);
        break;
    }
    if (action == POD_NOTHING)
        pods_unqueue(p, e);
    else
        pods_request(p, e, o, action, body);
    json_decref(body);
    json_decref(patch);
    return p->call.busy;
}

/* ---- answers ---- */

static bool is_passing(enum err_code code)
{
    return code == ERR_UNAVAILABLE || code == ERR_EXHAUSTED || code == ERR_DEADLINE ||
           code == ERR_UNAUTHENTICATED || code == ERR_EXISTS;
}

static void pods_accepted(struct pods_part *p, struct pod_entry *e, const json_t *object)
{
    struct our_pod *o = our_pod_find(e, p->writing_uid);

    e->wait_ms = e->not_before_ms = 0;
    state_part_report(p->sync->state, "pods", NULL);
    if (p->action == POD_DELETE)
        e->deleted = e->there && str_eq(e->uid, p->writing_uid); /* the watch may already have reported it */
    else
        pod_entry_see(e, object);
    if (p->action == POD_PATCH && o != NULL && e->version != NULL &&
        strlen(e->version) < sizeof(o->accepted_version)) {
        o->accepted_status = p->writing_status;
        snprintf(o->accepted_version, sizeof(o->accepted_version), "%s", e->version);
    }
}

static void pods_refused(struct pods_part *p, struct pod_entry *e, const struct sync_answer *a)
{
    const bool passing = is_passing(a->error->code);
    uint64_t wait_ms = sync_wait_ms(a, &e->wait_ms, passing ? 1000 : 10000, passing ? 10000 : 300000);

    e->not_before_ms = clock_boot_ms() + wait_ms;
    /* The pod is gone, or a different one; the watch reports it soon. */
    if (a->error->code != ERR_NOT_FOUND && a->error->code != ERR_ABORTED && a->error->code != ERR_EXISTS)
        state_part_report(p->sync->state, "pods", a->error->text);
    if (p->action == POD_CREATE_MIRROR && a->error->code == ERR_PERMISSION)
        sync_send(p->sync, json_pack("{s:s, s:s, s:s, s:s, s:i, s:o}", "type", "denied", "kind", "Pod",
                                     "namespace", e->namespace_, "name", e->name, "code", a->http, "message",
                                     json_string_of(a->error->text)));
}

static void pods_answered(void *owner, const struct sync_answer *a)
{
    struct pods_part *p = owner;
    struct pod_entry *e = p->writing;

    p->writing = NULL;
    if (a->error->code == ERR_OK)
        pods_accepted(p, e, a->object);
    else if (a->error->code != ERR_CANCELLED)
        pods_refused(p, e, a);
    free(take_ptr(&p->writing_uid));
    if (!e->there && LIST_EMPTY(&e->ours))
        pod_entry_free(p, e);
    else if (p->started)
        pods_queue(p, e);
    pods_write(p);
}

void pods_write(void *part)
{
    struct pods_part *p = part;
    struct pod_entry *e, *next;
    uint64_t now_ms = clock_boot_ms(), wait_ms = UINT64_MAX;

    if (!p->started || p->call.busy)
        return;
    TAILQ_FOREACH_SAFE (e, &p->queue, queued, next) {
        if (e->not_before_ms > now_ms)
            wait_ms = e->not_before_ms - now_ms < wait_ms ? e->not_before_ms - now_ms : wait_ms;
        else if (pods_begin(p, e))
            return;
    }
    if (wait_ms != UINT64_MAX)
        sync_timer_start(p->sync, &p->timer, wait_ms, pods_write, p);
}
