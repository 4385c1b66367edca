/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/node.h"

#include "agent/kube/decide/node_merge.h"
#include "agent/kube/decide/seen.h"
#include "agent/kube/sync/internal.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

struct node_part {
    struct kube_sync *sync;
    struct kube_reflector *reflector;
    struct sync_call call;
    struct sync_timer timer;
    json_t *ours;  /* last sent by the daemon */
    json_t *known; /* as the apiserver has it; NULL: not known, or not there */
    char *uid;     /* of known; also after it is gone */
    uint64_t forwarded;
    struct node_pace pace;
    uint64_t wait_ms;       /* back-off of the last failure */
    uint64_t not_before_ms; /* boot clock; after a failure */
    enum { NODE_IDLE, NODE_CREATE, NODE_GET, NODE_PATCH } step;
    bool started, registered, reconcile, troubled, changes /* of the patch under way */;
};

uint64_t node_pace_wait_ms(const struct node_pace *p, bool differs, bool urgent, uint64_t now_ms)
{
    uint64_t due = p->last_ms + (urgent    ? NODE_URGENT_MS
                                 : differs ? p->update_ms
                                           : (uint64_t)((int64_t)p->report_ms + p->stretch_ms));

    return !p->reported || due <= now_ms ? 0 : due - now_ms;
}

static void node_step(void *owner);

/* ---- requests ---- */

static void node_answered(void *owner, const struct sync_answer *a);

static void node_request(struct node_part *n, int step, const char *method, const json_t *body)
{
    char path[512], subject[300];
    struct kube_request_spec spec = { .method = method, .path = path, .subject = subject, .body = body };

    snprintf(path, sizeof(path), "/api/v1/nodes%s%s%s", step == NODE_CREATE ? "" : "/",
             step == NODE_CREATE ? "" : n->sync->node_name, step == NODE_PATCH ? "/status?timeout=10s" : "");
    snprintf(subject, sizeof(subject), "node %s", n->sync->node_name);
    if (step == NODE_PATCH) {
        spec.content_type = JSON_PATCH_STRATEGIC;
        spec.deadline_ms = n->pace.update_ms;
        spec.unpaced = true;
    }
    n->step = step;
    sync_call(n->sync, &n->call, &spec, node_answered, n);
}

static void node_keep(struct node_part *n, json_t *object)
{
    json_t *meta = json_object_get(object, "metadata");
    const char *uid = json_str(meta, "uid");
    char *copy;

    if (uid == NULL || seen_is_older(object, n->known))
        return;
    json_object_del(meta, "managedFields");
    if (!str_eq(uid, n->uid)) {
        copy = strdup(uid);
        if (copy == NULL)
            return;
        free(n->uid);
        n->uid = copy;
    }
    json_incref(object);
    json_decref(n->known);
    n->known = object;
    n->sync->on_node(n->sync);
}

static void node_now(char ret[CLOCK_RFC3339_SIZE])
{
    clock_format_s(clock_wall_ns(), ret);
}

static void node_good(struct node_part *n, bool reported)
{
    n->wait_ms = n->not_before_ms = 0;
    if (reported) {
        n->pace.reported = true;
        n->pace.last_ms = clock_boot_ms();
        n->pace.stretch_ms = n->changes ? (int64_t)((double)n->pace.report_ms * (sync_random() - 0.5)) : 0;
    }
    state_part_report(n->sync->state, "node", NULL);
}

static void node_failed(struct node_part *n, const struct sync_answer *a, uint64_t first_ms)
{
    n->not_before_ms = clock_boot_ms() + sync_wait_ms(a, &n->wait_ms, first_ms, 7000);
    state_part_report(n->sync->state, "node", a->error->text);
}

static void node_answered(void *owner, const struct sync_answer *a)
{
    struct node_part *n = owner;
    const enum err_code code = a->error->code;
    const int step = n->step;

    n->step = NODE_IDLE;
    if (code == ERR_CANCELLED || !n->started)
        return;
    if (step == NODE_CREATE && code == ERR_EXISTS) {
        node_request(n, NODE_GET, "GET", NULL);
        return;
    }
    if (code == ERR_OK) {
        node_keep(n, a->object);
        n->reconcile = step == NODE_GET || (n->reconcile && step != NODE_PATCH);
        n->registered = true;
        node_good(n, step != NODE_GET);
    } else if (step == NODE_PATCH && code == ERR_NOT_FOUND) {
        json_decref(n->known); /* the watch reports a new version */
        n->known = NULL;
    } else {
        node_failed(n, a, step == NODE_PATCH ? 200 : 100);
    }
    node_step(n);
}

/* ---- the next step ---- */

static void node_register(struct node_part *n)
{
    char now[CLOCK_RFC3339_SIZE];
    json_t *body;

    if (n->known != NULL) {
        n->registered = n->reconcile = true;
        return;
    }
    if (!kube_reflector_is_synced(n->reflector) && !n->troubled)
        return; /* the watch will report in a moment whether it exists */
    node_now(now);
    body = node_registration(n->ours, n->sync->config, now);
    if (body != NULL) {
        n->changes = true;
        node_request(n, NODE_CREATE, "POST", body);
    }
    json_decref(body);
}

static void node_report(struct node_part *n)
{
    const json_t *before = json_object_get(n->known, "status");
    char now[CLOCK_RFC3339_SIZE];
    json_t *status, *patch = NULL;
    uint64_t wait_ms;

    node_now(now);
    status = node_status_merge(n->known, n->ours, now);
    if (status == NULL)
        return;
    n->changes = node_status_differs(before, status) || n->reconcile;
    wait_ms = node_pace_wait_ms(&n->pace, n->changes, n->reconcile || node_status_is_urgent(before, status),
                                clock_boot_ms());
    if (wait_ms == 0)
        patch = node_status_patch(n->known, n->ours, status, n->reconcile);
    if (json_object_size(patch) > 0) {
        node_request(n, NODE_PATCH, "PATCH", patch);
    } else {
        if (wait_ms == 0) { /* not even a heartbeat: it was reported within this second */
            n->reconcile = n->changes = false;
            node_good(n, true);
            wait_ms = n->pace.report_ms;
        }
        sync_timer_start(n->sync, &n->timer, wait_ms, node_step, n);
    }
    json_decref(patch);
    json_decref(status);
}

static void node_step(void *owner)
{
    struct node_part *n = owner;
    uint64_t now_ms = clock_boot_ms();

    if (!n->started || n->call.busy || n->ours == NULL)
        return;
    if (now_ms < n->not_before_ms) {
        sync_timer_start(n->sync, &n->timer, n->not_before_ms - now_ms, node_step, n);
        return;
    }
    if (!n->registered && json_object_get(n->sync->config, "registerNode") != json_false())
        node_register(n);
    if (n->known != NULL && !n->call.busy)
        node_report(n);
}

/* ---- the watch ---- */

/* The members that the daemon uses: of the status, which every patch returns, the boot id, and the volumes in
 * use and attached. */
static void node_forward(struct node_part *n, const json_t *object)
{
    const json_t *status = json_object_get(object, "status");
    const char *boot = json_str(json_object_get(status, "nodeInfo"), "bootID");
    static const char *const volumes[] = { "volumesInUse", "volumesAttached" };
    json_t *copy = json_copy((json_t *)object);
    uint64_t hash;

    json_object_del(copy, "status");
    if (boot != NULL)
        json_object_set_new(copy, "status", json_pack("{s:{s:s}}", "nodeInfo", "bootID", boot));
    for (size_t i = 0; i < ARRAY_LEN(volumes); i++)
        if (json_array_size(json_object_get(status, volumes[i])) > 0) {
            if (json_object_get(copy, "status") == NULL)
                json_object_set_new(copy, "status", json_object());
            json_object_set(json_object_get(copy, "status"), volumes[i], json_object_get(status, volumes[i]));
        }
    hash = seen_hash(copy, NULL);
    if (hash != n->forwarded && copy != NULL)
        sync_send(n->sync, json_pack("{s:s, s:O}", "type", "put", "object", copy));
    n->forwarded = hash;
    json_decref(copy);
}

static void node_on_put(json_t *object, void *arg)
{
    struct node_part *n = arg;

    node_keep(n, object);
    node_forward(n, object);
    node_step(n);
}

static void node_on_gone(const char *namespace_, const char *name, const char *uid, void *arg)
{
    struct node_part *n = arg;

    (void)namespace_;
    if (!str_eq(uid, n->uid))
        return;
    json_decref(n->known);
    n->known = NULL;
    n->forwarded = 0;
    state_part_report(n->sync->state, "node",
                      "the Node was deleted: it is registered again when the agent starts anew");
    sync_send(n->sync,
              json_pack("{s:s, s:s, s:s, s:s}", "type", "gone", "kind", "Node", "name", name, "uid", uid));
}

static void node_on_synced(void *arg)
{
    struct node_part *n = arg;

    sync_send(n->sync, json_pack("{s:s, s:s}", "type", "synced", "kind", "Node"));
    node_step(n);
}

static void node_on_trouble(const struct err *why, int http, void *arg)
{
    struct node_part *n = arg;

    (void)http;
    n->troubled = why != NULL;
    state_part_report(n->sync->state, "watch of the node", why != NULL ? why->text : NULL);
    node_step(n);
}

/* ---- the part ---- */

struct node_part *node_part_new(struct kube_sync *s)
{
    struct node_part *n = calloc(1, sizeof(*n));

    if (n != NULL)
        n->sync = s;
    return n;
}

void node_part_start(struct node_part *n)
{
    struct err e = { 0 };
    char selector[300];
    const struct kube_reflector_options o = { .loop = n->sync->o.loop,
                                              .client = n->sync->o.client,
                                              .path = "/api/v1/nodes",
                                              .field_selector = selector,
                                              .subject = "the node",
                                              .objects_max = 1,
                                              .on_put = node_on_put,
                                              .on_gone = node_on_gone,
                                              .on_synced = node_on_synced,
                                              .on_trouble = node_on_trouble,
                                              .arg = n };

    if (n->started)
        return;
    n->started = true;
    n->pace.update_ms = (uint64_t)json_int(n->sync->config, "updateMs", NODE_UPDATE_MS);
    n->pace.report_ms = (uint64_t)json_int(n->sync->config, "reportMs", NODE_REPORT_MS);
    snprintf(selector, sizeof(selector), "metadata.name=%s", n->sync->node_name);
    if (kube_reflector_open(&n->reflector, &o, &e) != ERR_OK)
        state_part_report(n->sync->state, "watch of the node", e.text);
    node_step(n);
}

void node_part_take(struct node_part *n, const json_t *object)
{
    json_decref(n->ours);
    n->ours = json_deep_copy(object);
    node_step(n);
}

void node_part_anew(struct node_part *n)
{
    n->not_before_ms = 0;
    node_step(n);
}

const char *node_part_uid(const struct node_part *n)
{
    return n->known != NULL ? n->uid : NULL;
}

bool node_part_is_leaving(const struct node_part *n)
{
    return json_str(json_object_get(n->known, "metadata"), "deletionTimestamp") != NULL;
}

const json_t *node_part_addresses(const struct node_part *n)
{
    return json_object_get(json_object_get(n->ours, "status"), "addresses");
}

const json_t *node_part_known(const struct node_part *n)
{
    return n->known;
}

void node_part_see(struct node_part *n, json_t *object)
{
    if (n->known == NULL || !n->started) /* deleted meanwhile */
        return;
    node_keep(n, object);
    node_forward(n, n->known);
}

void node_part_stop(struct node_part *n)
{
    n->started = false;
    kube_reflector_close(n->reflector);
    n->reflector = NULL;
    sync_timer_stop(n->sync, &n->timer);
    sync_call_cancel(&n->call);
}

void node_part_free(struct node_part *n)
{
    if (n == NULL)
        return;
    json_decref(n->ours);
    json_decref(n->known);
    free(n->uid);
    free(n);
}
