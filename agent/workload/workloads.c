/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/workloads.h"

#include "agent/api/kept_meta.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/status/status.h"
#include "agent/workload/internal.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 64         /* steps of a workload in one turn of the loop; the rest follows in the next */
#define ORPHANS_LOOK_MS 5000 /* while a file of the folder has problems */

static void on_timer(struct boot_timer *t);

struct workload *workload_find(struct workloads *w, const char *uid)
{
    struct workload *found;

    HASH_FIND_STR(w->all, uid, found);
    return found;
}

void workloads_look_again(struct workloads *w, int64_t ms)
{
    if (w->next_ms < 0 || ms < w->next_ms)
        w->next_ms = ms;
}

void workloads_wake(struct workloads *w)
{
    if (w->stepping)
        workloads_look_again(w, 0);
    else if (w->begun && !w->stopped)
        boot_timer_start(&w->timer, clock_boot(), on_timer);
}

/* ---- the store ---- */

static void name_ignored(const struct api_strs *ignored, const char *kind, const struct api_meta *m)
{
    for (size_t i = 0; i < ignored->n; i++)
        log_warn("a field is ignored", F_STR("kind", kind), F_STR("namespace", m->namespace),
                 F_STR("name", m->name), F_STR("field", ignored->v[i]));
}

static void forget(struct workloads *w, struct workload *one)
{
    HASH_DEL(w->all, one);
    workload_facts_free(one);
    api_generic_unref(one->object);
    free(one->seen);
    free(one->pods);
    json_decref(one->told);
    free(one);
}

/* What is remembered of its object. */
static void look_at(struct workload *one)
{
    json_auto_t *o = NULL;

    one->changed = true;
    if (one->revision != NULL) {
        revision_take(one);
    } else if (revision_has(one->kind)) {
        o = json_loads(one->object->json, 0, NULL);
        one->looks = revision_looks(revision_template(o));
    }
}

static void begin_progress(struct workload *one)
{
    one->progress_ns = clock_wall_ns();
    one->progress_at = clock_boot();
    one->late = false;
    one->asked = false;
}

/* Whether two objects have the same generation by the apiserver's rule: equal specs, and for a Deployment
 * equal annotations. */
static bool counts_alike(enum api_kind kind, const struct api_generic *a, const struct api_generic *b)
{
    json_auto_t *x = json_loads(a->json, 0, NULL), *y = json_loads(b->json, 0, NULL);
    const json_t *notes_x = json_object_get(json_object_get(x, "metadata"), "annotations"),
                 *notes_y = json_object_get(json_object_get(y, "metadata"), "annotations");

    return x != NULL && y != NULL && json_equal(json_object_get(x, "spec"), json_object_get(y, "spec")) &&
           (kind != API_KIND_DEPLOYMENT || notes_x == notes_y ||
            (notes_x != NULL && notes_y != NULL && json_equal(notes_x, notes_y)));
}

static void take(struct workloads *w, enum api_kind kind, struct api_generic *g)
{
    char uid[WORKLOAD_UID_SIZE];
    struct workload *one;
    bool same, same_spec;

    workload_uid(kind, g->meta.namespace, g->meta.name, uid);
    one = workload_find(w, uid);
    if (one == NULL) {
        one = calloc(1, sizeof(*one));
        if (one != NULL) {
            memcpy(one->uid, uid, sizeof(uid));
            one->kind = kind;
            HASH_ADD_STR(w->all, uid, one);
        }
        if (one == NULL || one->hh.tbl == NULL) {
            log_error("cannot run a workload: out of memory", F_STR("name", g->meta.name));
            free(one);
            return;
        }
        one->object = api_generic_ref(g);
        one->generation = 1;
        if (!workload_record_take(w, one)) {
            log_error("cannot run a workload: out of memory", F_STR("name", g->meta.name));
            forget(w, one);
            return;
        }
        look_at(one);
        begin_progress(one);
        if (one->revision == NULL)
            name_ignored(&g->ignored, api_kind_name(kind), &g->meta);
        return;
    }
    same = str_eq(one->object->json, g->json);
    same_spec = same || counts_alike(kind, one->object, g);
    api_generic_unref(one->object);
    one->object = api_generic_ref(g);
    if (same) /* only parts for other programs have changed */
        return;
    look_at(one);
    if (!same_spec)
        one->generation++;
    begin_progress(one);
    if (one->revision == NULL)
        name_ignored(&g->ignored, api_kind_name(kind), &g->meta);
}

static void on_store(enum src_change change, const struct api_object *o, void *arg)
{
    struct workloads *w = arg;
    const struct api_meta *m = api_object_meta(o);
    char uid[WORKLOAD_UID_SIZE];
    struct workload *one;

    if (api_object_origin(o) != API_FROM_FOLDER)
        return;
    if (change == SRC_ADDED && api_kind_is_only_shown(o->kind))
        log_info("the object is kept and shown; nothing here acts on it",
                 F_STR("kind", api_kind_name(o->kind)), F_STR("name", m->name));
    if (!api_kind_is_workload(o->kind) && o->kind != API_KIND_CONTROLLER_REVISION) {
        if (change != SRC_REMOVED && api_kind_is_generic(o->kind))
            name_ignored(&o->generic->ignored, api_kind_name(o->kind), m);
        return;
    }
    if (change == SRC_REMOVED) {
        workload_uid(o->kind, m->namespace, m->name, uid);
        one = workload_find(w, uid);
        if (one != NULL && one->object->workload != NULL && one->object->workload->claims_go_with_set)
            claims_drop(w->o.claims, uid, 0);
        if (one != NULL) {
            forget(w, one);
            if (!strs_add(&w->gone, uid)) /* after a restart their pods are found as orphans */
                log_error("cannot end the pods of a workload: out of memory", F_STR("name", m->name));
            workload_record_remove(w, uid);
        }
    } else {
        take(w, o->kind, o->generic);
    }
    workloads_wake(w);
}

/* ---- the present pods ---- */

static bool is_available(struct workloads *w, const struct workload *one, bool ready, int64_t since_ns)
{
    int64_t rest_ns;

    if (!ready)
        return false;
    rest_ns = since_ns + one->object->workload->min_ready_seconds * INT64_C(1000000000) - clock_wall_ns();
    if (one->object->workload->min_ready_seconds > 0 && rest_ns > 0)
        workloads_look_again(w, rest_ns / WORKLOAD_MS + 1);
    return one->object->workload->min_ready_seconds == 0 || rest_ns <= 0;
}

static void count(struct workload *one, const struct workload_seen *s, bool ready)
{
    if (!s->kept)
        return;
    one->counts.pods++;
    one->counts.ready += ready;
    one->counts.available += s->available;
    one->counts.updated += s->current;
    one->counts.updated_available += s->current && s->available;
}

static void see(struct workloads *w, struct workload *one, const struct pod *p)
{
    const struct api_pod *kept =
        src_store_pod(w->store, API_FROM_FOLDER, p->api->meta.namespace, p->api->meta.name);
    const char *dash = strrchr(p->api->meta.name, '-'),
               *hash = api_kvs_get(&p->api->meta.labels, workload_hash_label(one->kind));
    size_t n = one->n_seen;
    struct workload_seen *s;
    struct workload *rev;
    int64_t since_ns;
    bool ready = pod_is_ready(p, &since_ns) && p->state == POD_RUNNING;

    if (!array_room(one->seen, n))
        return;
    n = one->n_seen;
    if (!array_room(one->pods, n))
        return;
    s = &one->seen[one->n_seen];
    one->pods[one->n_seen++] = p;
    *s = (struct workload_seen){
        .number = dash != NULL ? (unsigned)strtoul(dash + 1, NULL, 10) : 0,
        .current = one->kind == API_KIND_REPLICA_SET || str_eq(hash, workload_hash(one)),
        .kept = kept != NULL && workload_of_pod(w, kept) == one,
        .available = is_available(w, one, ready, since_ns),
    };
    if (one->created_ns == 0 || p->created_ns < one->created_ns)
        one->created_ns = p->created_ns;
    count(one, s, ready);
    rev = revision_of(w, one, hash);
    if (rev != NULL) {
        count(rev, s, ready);
        rev->revision->uses++;
    }
}

/* ---- steps ---- */

static void note_progress(struct workloads *w, struct workload *one, const struct workload_counts *before)
{
    const struct api_workload *spec = one->object->workload;
    bool done = one->counts.updated_available == one->counts.pods &&
                one->counts.available >= (unsigned)spec->replicas;
    int64_t rest_ms;

    if (memcmp(before, &one->counts, sizeof(*before)) != 0) {
        one->progress_ns = clock_wall_ns();
        one->progress_at = clock_boot();
        one->late = false;
    }
    if (one->kind != API_KIND_DEPLOYMENT || done || one->late || spec->paused)
        return;
    rest_ms =
        spec->progress_deadline_seconds * INT64_C(1000) - clock_boot_since_ns(one->progress_at) / WORKLOAD_MS;
    one->late = rest_ms <= 0;
    if (!one->late)
        workloads_look_again(w, rest_ms + 1);
}

static void step_one(struct workloads *w, struct workload *one, const struct workload_counts *before)
{
    struct workload_want want = workload_want_of(one->kind, one->object->workload);
    struct workload_step steps[STEPS_MAX];
    size_t n;

    if (!workload_fits(w, one))
        want.replicas = 0;
    n = workload_decide(&want, one->seen, one->n_seen, steps, STEPS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct pod *p = steps[i].create ? NULL : one->pods[steps[i].index];

        if (p == NULL)
            workload_make(w, one, steps[i].number, 0);
        else
            workload_remove(w, one, p);
    }
    if (one->kind == API_KIND_DEPLOYMENT)
        workload_event_scaled(w, one);
    if (n == STEPS_MAX)
        workloads_look_again(w, 0);
    if (one->object->workload->claims_go_with_pods)
        claims_drop(w->o.claims, one->uid, want.first + want.replicas);
    note_progress(w, one, before);
}

static void turn(struct workloads *w, struct workload *one)
{
    const struct workload_counts before = one->counts;

    if (one->revision != NULL || one->kind == API_KIND_CONTROLLER_REVISION)
        return; /* the workload that it belongs to sees to it */
    one->counts = (struct workload_counts){ 0 };
    if (api_kept_meta_deleting(one->object->meta.kept)) { /* finalizers hold it: its pods stay */
        pods_each (w->o.node, p)
            if (one->kind != API_KIND_JOB && p->api->owner_uid != NULL && workload_of_pod(w, p->api) == one)
                see(w, one, p);
    } else if (one->kind == API_KIND_CRON_JOB) {
        cron_step(w, one);
    } else if (one->kind == API_KIND_JOB) {
        job_step(w, one);
    } else {
        if (revision_has(one->kind))
            revisions_resolve(w, one);
        pods_each (w->o.node, p)
            if (p->api->owner_uid != NULL && workload_of_pod(w, p->api) == one)
                see(w, one, p);
        if (!one->on_hold || one->number != 0 || one->n_seen > 0) /* made paused: it waits for its first */
            step_one(w, one, &before);
        if (revision_has(one->kind))
            revisions_settle(w, one);
    }
    workload_notify(w, one);
}

/* Drops Jobs of CronJobs, and revisions, that are no longer kept, one at a time, because the table changes.
 */
static void drop_made(struct workloads *w)
{
    for (struct workload *one = w->all; one != NULL;) {
        if (one->goes) {
            src_store_remove(w->store, API_FROM_FOLDER, one->kind, one->object->meta.namespace,
                             one->object->meta.name);
            one = w->all;
        } else {
            one = one->hh.next;
        }
    }
}

static void step(struct workloads *w)
{
    struct workload *one, *tmp;

    w->next_ms = -1;
    w->stepping = true;
    HASH_ITER (hh, w->all, one, tmp)
        one->n_seen = 0;
    if (!workloads_drop_orphans(w))
        workloads_look_again(w, ORPHANS_LOOK_MS);
    taints_step(w);
    revisions_link(w);
    HASH_ITER (hh, w->all, one, tmp)
        turn(w, one);
    drop_made(w);
    w->stepping = false;
    if (w->next_ms >= 0)
        boot_timer_start(&w->timer, clock_boot_in_ms((uint64_t)w->next_ms), on_timer);
}

static void on_timer(struct boot_timer *t)
{
    struct workloads *w = container_of(t, struct workloads, timer);

    if (!w->stopped && !w->o.node->closing && !w->o.node->draining)
        step(w);
}

/* ---- life ---- */

static void on_pod(const struct pod *p, void *arg)
{
    struct workloads *w = arg;

    claims_pod_changed(w->o.claims, p);
    if (p->api->owner_uid != NULL)
        workloads_wake(w);
}

/* A CronJob's next moment, by the new clock; or pods that a new taint ends. */
static void on_change(void *arg)
{
    workloads_wake(arg);
}

static void add_known(const struct api_object *o, void *arg)
{
    on_store(SRC_ADDED, o, arg);
}

enum err_code workloads_open(struct workloads **ret, const struct workloads_options *o, struct err *e)
{
    struct workloads *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return err_nomem(e);
    w->o = *o;
    w->store = o->node->o.store;
    w->dir = str_printf("%s/jobs", o->node->o.state_dir);
    if (w->dir == NULL) {
        free(w);
        return err_nomem(e);
    }
    w->link = (struct node_workloads){ .pod_changed = on_pod,
                                       .node_changed = on_change,
                                       .clock_set = on_change,
                                       .object = workloads_object,
                                       .arg = w };
    boot_timer_init(o->node->timers, &w->timer);
    for (enum api_kind k = 0; k < API_KINDS; k++)
        if (api_kind_is_generic(k))
            src_store_each(w->store, k, add_known, w);
    src_store_watch(w->store, on_store, w);
    *ret = w;
    return workload_records_load(w, e);
}

const struct node_workloads *workloads_link(struct workloads *w)
{
    return &w->link;
}

void workloads_begin(struct workloads *w)
{
    w->begun = true;
    workloads_adopt(w);
    step(w);
}

void workloads_stop(struct workloads *w)
{
    w->stopped = true;
    boot_timer_stop(&w->timer);
}

static void on_closed(struct boot_timer *t)
{
    struct workloads *w = container_of(t, struct workloads, timer);

    free(w->dir);
    strs_done(&w->gone);
    free(w);
}

void workloads_free(struct workloads *w)
{
    struct workload *one, *tmp;

    if (w == NULL)
        return;
    w->stopped = true;
    HASH_ITER (hh, w->all, one, tmp)
        forget(w, one);
    boot_timer_close(&w->timer, on_closed);
}
