/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/workloads.h"

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

#define JOB_RETRY_S 10 /* after a failure, doubling to JOB_RETRY_MAX_S, as Kubernetes' controller */
#define JOB_RETRY_MAX_S 360
#define STEPS_MAX 64         /* of a workload in one turn; the rest follows in the next */
#define ORPHANS_LOOK_MS 5000 /* while a file of the folder has problems */
#define MS INT64_C(1000000)

static void on_timer(struct boot_timer *t);

struct workload *workload_find(struct workloads *w, const char *uid)
{
    struct workload *found;

    HASH_FIND_STR(w->all, uid, found);
    return found;
}

void workloads_wake(struct workloads *w)
{
    if (w->begun && !w->stopped)
        boot_timer_start(&w->timer, clock_boot(), on_timer);
}

static void look_again(struct workloads *w, int64_t ms)
{
    if (w->next_ms < 0 || ms < w->next_ms)
        w->next_ms = ms;
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
    api_generic_unref(one->object);
    free(one->seen);
    free(one->pods);
    json_decref(one->told);
    free(one);
}

static void take(struct workloads *w, enum api_kind kind, struct api_generic *g)
{
    char uid[WORKLOAD_UID_SIZE];
    struct workload *one;
    bool same;

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
    }
    same = one->object != NULL && str_eq(one->object->json, g->json);
    api_generic_unref(one->object);
    one->object = api_generic_ref(g);
    if (same) /* only what it keeps for others has changed */
        return;
    one->generation++;
    one->progress_ns = clock_wall_ns();
    one->progress_at = clock_boot();
    one->late = false;
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
    if (!api_kind_is_workload(o->kind))
        return;
    if (change == SRC_REMOVED) {
        workload_uid(o->kind, m->namespace, m->name, uid);
        one = workload_find(w, uid);
        if (one != NULL && one->object->workload->claims_go_with_set)
            claims_drop(w->o.claims, uid, 0);
        if (one != NULL)
            forget(w, one);
    } else {
        take(w, o->kind, o->generic);
    }
    workloads_wake(w);
}

/* ---- what there is ---- */

static bool names_by_hash(enum api_kind kind)
{
    return kind == API_KIND_DEPLOYMENT || kind == API_KIND_DAEMON_SET;
}

/* In addition to the hash. */
static const char job_labels[][32] = { "batch.kubernetes.io/job-name", "job-name" };

static const char *hash_label(enum api_kind kind)
{
    return kind == API_KIND_DEPLOYMENT ? "pod-template-hash" : "controller-revision-hash";
}

static bool is_available(struct workloads *w, const struct workload *one, bool ready, int64_t since_ns)
{
    int64_t rest_ns;

    if (!ready)
        return false;
    rest_ns = since_ns + one->object->workload->min_ready_seconds * INT64_C(1000000000) - clock_wall_ns();
    if (one->object->workload->min_ready_seconds > 0 && rest_ns > 0)
        look_again(w, rest_ns / MS + 1);
    return one->object->workload->min_ready_seconds == 0 || rest_ns <= 0;
}

static void see(struct workloads *w, struct workload *one, const struct pod *p)
{
    const struct api_pod *kept =
        src_store_pod(w->store, API_FROM_FOLDER, p->api->meta.namespace, p->api->meta.name);
    const char *dash = strrchr(p->api->meta.name, '-');
    size_t n = one->n_seen;
    struct workload_seen *s;
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
        .current = one->kind == API_KIND_REPLICA_SET ||
                   str_eq(api_kvs_get(&p->api->meta.labels, hash_label(one->kind)),
                          one->object->workload->pods.hash),
        .kept = kept != NULL && str_eq(kept->owner_uid, one->uid),
        .available = is_available(w, one, ready, since_ns),
    };
    if (one->kind == API_KIND_JOB) {
        s->succeeded = strcmp(pod_phase(p), "Succeeded") == 0;
        s->failed = strcmp(pod_phase(p), "Failed") == 0;
        s->late = s->failed && strcmp(p->reason, "DeadlineExceeded") == 0;
        if (s->succeeded || s->failed)
            one->ended_ns = p->state_since_ns > one->ended_ns ? p->state_since_ns : one->ended_ns;
        one->counts.succeeded += s->current && s->succeeded;
        one->counts.failed += s->current && s->failed;
        one->counts.active += !s->succeeded && !s->failed;
    }
    if (one->created_ns == 0 || p->created_ns < one->created_ns)
        one->created_ns = p->created_ns;
    if (!s->kept)
        return;
    one->counts.pods++;
    one->counts.ready += ready;
    one->counts.available += s->available;
    one->counts.updated += s->current;
    one->counts.updated_available += s->current && s->available;
}

/* ---- steps ---- */

#define CLAIMS_MAX 32 /* volumeClaimTemplates of a StatefulSet */

struct own_claims {              /* of a pod */
    struct api_kv v[CLAIMS_MAX]; /* volume, and name of its claim */
    size_t n;
};

static void own_claims_done(struct own_claims *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].value);
}

static enum err_code make_claims(struct workloads *w, const struct workload *one, unsigned number,
                                 struct own_claims *ret, struct err *e)
{
    const struct api_generic *g = one->object;
    const struct api_strs *names = &g->workload->claim_names;
    json_auto_t *object = names->n > 0 ? json_loads(g->json, 0, NULL) : NULL;
    const json_t *templates = json_at(object, "spec.volumeClaimTemplates");

    if (names->n > CLAIMS_MAX)
        return err_set(e, ERR_INVALID, "%zu volumeClaimTemplates are too many, at most %d are allowed",
                       names->n, CLAIMS_MAX);
    for (size_t i = 0; i < names->n; i++) {
        char *name = str_printf("%s-%s-%u", names->v[i], g->meta.name, number);

        if (name == NULL)
            return err_nomem(e);
        ret->v[ret->n++] = (struct api_kv){ names->v[i], name };
        if (claims_make(w->o.claims, g->meta.namespace, name, json_array_get(templates, i), one->uid, e) !=
            ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static void make(struct workloads *w, struct workload *one, unsigned number)
{
    const struct api_generic *g = one->object;
    const struct api_kind_row *info = &api_kinds[one->kind];
    const char *hash = g->workload->pods.hash;
    char name[300], index[16];
    struct api_kv of_job[] = { { (char *)(uintptr_t)hash_label(one->kind), (char *)(uintptr_t)hash },
                               { (char *)(uintptr_t)job_labels[0], g->meta.name },
                               { (char *)(uintptr_t)job_labels[1], g->meta.name } };
    struct api_kv labels[] = { { (char *)(uintptr_t)hash_label(one->kind), (char *)(uintptr_t)hash },
                               { (char *)(uintptr_t) "statefulset.kubernetes.io/pod-name", name },
                               { (char *)(uintptr_t) "apps.kubernetes.io/pod-index", index } };
    struct api_expansion x = { .namespace_ = g->meta.namespace,
                               .name = name,
                               .labels = labels,
                               .n_labels = one->kind == API_KIND_STATEFUL_SET  ? 3
                                           : one->kind == API_KIND_REPLICA_SET ? 0
                                                                               : 1,
                               .owner_api_version = info->api_version,
                               .owner_kind = info->kind,
                               .owner_name = g->meta.name,
                               .owner_uid = one->uid };
    struct api_object o = { .kind = API_KIND_POD, .document = 1 };
    struct own_claims claims = { .n = 0 };
    const struct api_pod *other;
    struct err e = { 0 };

    if (one->kind == API_KIND_JOB) {
        x.labels = of_job;
        x.n_labels = ARRAY_LEN(of_job);
    }
    snprintf(index, sizeof(index), "%u", number);
    snprintf(name, sizeof(name), "%s%s%s-%u", g->meta.name, names_by_hash(one->kind) ? "-" : "",
             names_by_hash(one->kind) ? hash : "", number);
    if (one->kind == API_KIND_STATEFUL_SET) {
        x.hostname = name;
        x.subdomain = g->workload->service_name;
    }
    other = src_store_pod(w->store, API_FROM_FOLDER, g->meta.namespace, name);
    x.claims = claims.v;
    x.n_claims = g->workload->claim_names.n;
    if (other != NULL && !str_eq(other->owner_uid, one->uid))
        err_set(&e, ERR_EXISTS, "pod %.250s: another manifest has a pod of this name", name);
    else if (make_claims(w, one, number, &claims, &e) == ERR_OK &&
             api_expand_pod(g->workload->pods.pod, &x, &o.pod, &e) == ERR_OK) {
        if (src_store_put(w->store, &o, &e) == ERR_OK)
            log_info("pod of a workload added", F_STR("kind", info->kind), F_STR("name", g->meta.name),
                     F_STR("pod", name));
        api_pod_unref(o.pod);
    }
    if (e.code != ERR_OK && strcmp(one->problem, e.text) != 0)
        log_error("cannot make a pod of a workload", F_STR("kind", info->kind), F_STR("name", g->meta.name),
                  F_ERR(&e));
    snprintf(one->problem, sizeof(one->problem), "%.299s", e.code != ERR_OK ? e.text : "");
    own_claims_done(&claims);
}

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
    rest_ms = spec->progress_deadline_seconds * INT64_C(1000) - clock_boot_since_ns(one->progress_at) / MS;
    one->late = rest_ms <= 0;
    if (!one->late)
        look_again(w, rest_ms + 1);
}

/* Whether a Job waits before it makes another pod. */
static bool holds(struct workloads *w, const struct workload *one)
{
    int64_t wait_s = JOB_RETRY_S, rest_ns;

    if (one->kind != API_KIND_JOB || one->counts.failed == 0)
        return false;
    for (unsigned i = 1; i < one->counts.failed && wait_s < JOB_RETRY_MAX_S; i++)
        wait_s *= 2;
    if (wait_s > JOB_RETRY_MAX_S)
        wait_s = JOB_RETRY_MAX_S;
    rest_ns = one->ended_ns + wait_s * INT64_C(1000000000) - clock_wall_ns();
    if (rest_ns <= 0 || rest_ns > wait_s * INT64_C(1000000000)) /* the clock was set back */
        return false;
    look_again(w, rest_ns / MS + 1);
    return true;
}

static void step_one(struct workloads *w, struct workload *one, const struct workload_counts *before)
{
    struct workload_want want = workload_want_of(one->kind, one->object->workload);
    struct workload_step steps[STEPS_MAX];
    size_t n;

    want.hold = holds(w, one);
    n = workload_decide(&want, one->seen, one->n_seen, steps, STEPS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct pod *p = steps[i].create ? NULL : one->pods[steps[i].index];

        if (p == NULL)
            make(w, one, steps[i].number);
        else
            src_store_remove(w->store, API_FROM_FOLDER, API_KIND_POD, p->api->meta.namespace,
                             p->api->meta.name);
    }
    if (n == STEPS_MAX)
        look_again(w, 0);
    if (one->object->workload->claims_go_with_pods)
        claims_drop(w->o.claims, one->uid, want.first + want.replicas);
    note_progress(w, one, before);
}

static void step(struct workloads *w)
{
    struct workload *one, *tmp;

    w->next_ms = -1;
    HASH_ITER (hh, w->all, one, tmp) {
        one->n_seen = 0;
        one->ended_ns = 0;
    }
    if (!workloads_drop_orphans(w))
        look_again(w, ORPHANS_LOOK_MS);
    HASH_ITER (hh, w->all, one, tmp) {
        const struct workload_counts before = one->counts;

        one->counts = (struct workload_counts){ 0 };
        pods_each (w->o.node, p)
            if (str_eq(p->api->owner_uid, one->uid))
                see(w, one, p);
        step_one(w, one, &before);
        workload_tell(w, one);
    }
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
    w->link = (struct node_workloads){ .pod_changed = on_pod, .object = workloads_object, .arg = w };
    boot_timer_init(o->node->timers, &w->timer);
    for (enum api_kind k = 0; k < API_KINDS; k++)
        if (api_kind_is_generic(k))
            src_store_each(w->store, k, add_known, w);
    src_store_watch(w->store, on_store, w);
    *ret = w;
    return ERR_OK;
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
    free(container_of(t, struct workloads, timer));
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
