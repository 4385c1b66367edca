/* SPDX-License-Identifier: Apache-2.0 */
/* show - objects of the folder with their status, in the form of an API server. */
#include "agent/api/job_labels.h"
#include "agent/api/kept_meta.h"
#include "agent/status/server.h"
#include "agent/workload/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <string.h>

void show_number(json_t *o, const char *key, int64_t n)
{
    json_object_set_new(o, key, json_integer((json_int_t)n));
}

void show_time(json_t *o, const char *key, int64_t ns)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_format_s(ns, text);
    json_put_str(o, key, text);
}

void show_condition(json_t *list, int64_t since_ns, const char *type, bool is_true, const char *reason,
                    const char *message)
{
    json_t *o = json_object();

    json_put_str(o, "type", type);
    json_put_str(o, "status", is_true ? "True" : "False");
    json_put_str(o, "reason", reason);
    json_put_str(o, "message", message);
    json_array_append_new(list, o);
    show_time(o, "lastTransitionTime", since_ns);
}

/* Adds a condition of a kind whose conditions have the time of their last probe. */
static void put_condition(json_t *list, const struct workload *one, const char *type, bool is_true,
                          const char *reason, const char *message)
{
    const bool batch = one->kind == API_KIND_JOB || one->kind == API_KIND_CRON_JOB;

    show_condition(list, one->progress_ns, type, is_true, reason, message);
    show_time(json_array_get(list, json_array_size(list) - 1), batch ? "lastProbeTime" : "lastUpdateTime",
              one->progress_ns);
}

static void put_ignored(json_t *list, const struct workload *one)
{
    const struct api_strs *ignored = &one->object->ignored;
    buf_auto b = BUF_INIT(64 * 1024);

    for (size_t i = 0; i < ignored->n; i++)
        buf_addf(&b, "%s%s", i > 0 ? "; " : "", ignored->v[i]);
    if (ignored->n > 0)
        put_condition(list, one, "coracle.dev/FieldsIgnored", true, "NotActedOn", b.p);
}

static void put_deployment(json_t *s, json_t *conditions, const struct workload *one)
{
    const struct workload_want want = workload_want_of(one->kind, one->object->workload);
    const struct workload_counts *c = &one->counts;
    unsigned floor_ = want.replicas > want.unavailable ? want.replicas - want.unavailable : 0;
    bool complete =
        c->updated == want.replicas && c->pods == want.replicas && c->updated_available == want.replicas;

    show_number(s, "replicas", c->pods);
    show_number(s, "updatedReplicas", c->updated);
    show_number(s, "readyReplicas", c->ready);
    show_number(s, "availableReplicas", c->available);
    if (want.replicas > c->available)
        show_number(s, "unavailableReplicas", want.replicas - c->available);
    put_condition(conditions, one, "Available", c->available >= floor_,
                  c->available >= floor_ ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable", NULL);
    if (want.paused)
        put_condition(conditions, one, "Progressing", false, "DeploymentPaused", NULL);
    else if (one->late)
        put_condition(conditions, one, "Progressing", false, "ProgressDeadlineExceeded",
                      "no progress within progressDeadlineSeconds");
    else
        put_condition(conditions, one, "Progressing", true,
                      complete ? "NewReplicaSetAvailable" : "ReplicaSetUpdated", NULL);
    if (one->problem[0] != '\0')
        put_condition(conditions, one, "ReplicaFailure", true, "FailedCreate", one->problem);
}

static void put_stateful(json_t *s, const struct workload *one)
{
    const struct workload_counts *c = &one->counts;
    const char *name = one->object->meta.name, *hash = workload_hash(one);
    str_auto revision = str_printf("%s-%s", name, hash);
    str_auto before = str_printf("%s-%s", name, one->before[0] != '\0' ? one->before : hash);

    show_number(s, "replicas", c->pods);
    show_number(s, "readyReplicas", c->ready);
    show_number(s, "availableReplicas", c->available);
    show_number(s, "currentReplicas", one->n_before);
    show_number(s, "updatedReplicas", c->updated);
    json_put_str(s, "updateRevision", revision);
    if (c->updated == c->pods || (before != NULL && revision != NULL && strcmp(before, revision) != 0))
        json_put_str(s, "currentRevision", before);
}

static void put_daemon(json_t *s, const struct workloads *w, const struct workload *one)
{
    const struct workload_counts *c = &one->counts;

    const bool fits = workload_fits(w, one);

    show_number(s, "desiredNumberScheduled", fits);
    show_number(s, "currentNumberScheduled", c->pods > 0);
    show_number(s, "numberMisscheduled", !fits && c->pods > 0);
    show_number(s, "numberReady", c->ready > 0);
    show_number(s, "updatedNumberScheduled", c->updated > 0);
    show_number(s, "numberAvailable", c->available > 0);
    if (c->available == 0 && fits)
        show_number(s, "numberUnavailable", 1);
}

static json_t *status_of(struct workloads *w, const struct workload *one)
{
    json_t *s = json_object(), *conditions = json_array();

    show_number(s, "observedGeneration", one->generation);
    if (one->kind == API_KIND_DEPLOYMENT) {
        put_deployment(s, conditions, one);
    } else if (one->kind == API_KIND_JOB) {
        json_object_del(s, "observedGeneration");
        show_job(s, conditions, one);
    } else if (one->kind == API_KIND_CRON_JOB) {
        json_object_del(s, "observedGeneration");
        show_cron_job(s, w, one);
    } else if (one->kind == API_KIND_STATEFUL_SET) {
        put_stateful(s, one);
    } else if (one->kind == API_KIND_DAEMON_SET) {
        put_daemon(s, w, one);
    } else {
        show_number(s, "replicas", one->counts.pods);
        show_number(s, "fullyLabeledReplicas", one->counts.pods);
        show_number(s, "readyReplicas", one->counts.ready);
        show_number(s, "availableReplicas", one->counts.available);
    }
    if (one->kind != API_KIND_DEPLOYMENT && one->problem[0] != '\0')
        put_condition(conditions, one, "ReplicaFailure", true, "FailedCreate", one->problem);
    put_ignored(conditions, one);
    if (json_array_size(conditions) > 0)
        json_object_set(s, "conditions", conditions);
    json_decref(conditions);
    return s;
}

static json_t *member(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    if (v == NULL)
        json_object_set_new(o, key, v = json_object());
    return v;
}

static void put_annotation(json_t *meta, const char *key, int64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)n);
    json_put_str(member(meta, "annotations"), key, text);
}

/* What no file and no record has: how many pods a ReplicaSet has, and which revision is in force. */
static void put_revision(struct workloads *w, const struct workload *one, json_t *o)
{
    json_t *meta = json_object_get(o, "metadata");
    const struct workload *owner = one->revision != NULL ? workload_find(w, one->owner) : NULL;
    struct workload_want want;

    if (one->kind == API_KIND_DEPLOYMENT && one->number > 0)
        put_annotation(meta, REVISION_ANNOTATION, one->number);
    if (one->revision == NULL || one->kind != API_KIND_REPLICA_SET)
        return;
    show_number(json_object_get(o, "spec"), "replicas", one->counts.pods);
    if (owner == NULL || one->counts.pods == 0)
        return;
    want = workload_want_of(owner->kind, owner->object->workload);
    put_annotation(meta, REVISION_DESIRED, want.replicas);
    put_annotation(meta, REVISION_MAX,
                   (int64_t)want.replicas + (want.update == API_UPDATE_RECREATE ? 0 : want.surge));
}

json_t *workloads_object(enum api_kind kind, const char *namespace_, const char *name, void *arg,
                         struct err *e)
{
    struct workloads *w = arg;
    const struct api_generic *g = src_store_generic(w->store, API_FROM_FOLDER, kind, namespace_, name);
    char uid[WORKLOAD_UID_SIZE];
    const struct workload *one;
    json_t *o, *meta;

    if (g == NULL) {
        err_set(e, ERR_NOT_FOUND, "\"%.253s\" not found", name);
        return NULL;
    }
    o = json_loads(g->json, 0, NULL);
    if (o == NULL) {
        err_nomem(e);
        return NULL;
    }
    ERR_IGNORE(api_kept_meta_add(json_object_get(o, "metadata"), g->meta.kept));
    if (!api_kind_is_workload(kind) && kind != API_KIND_CONTROLLER_REVISION) {
        claims_show(w->o.claims, kind, g->meta.namespace, g->meta.name, o);
        return o;
    }
    workload_uid(kind, g->meta.namespace, g->meta.name, uid);
    one = workload_find(w, uid);
    meta = json_object_get(o, "metadata");
    json_put_str(meta, "uid", uid);
    if (kind == API_KIND_JOB)
        api_job_label(o, name, uid);
    if (one == NULL)
        return o;
    show_time(meta, "creationTimestamp", one->created_ns != 0 ? one->created_ns : one->progress_ns);
    put_revision(w, one, o);
    if (kind == API_KIND_CONTROLLER_REVISION)
        return o;
    show_number(meta, "generation", one->generation);
    json_object_set_new(o, "status", status_of(w, one));
    return o;
}

void workload_notify(struct workloads *w, struct workload *one)
{
    const struct api_meta *meta = &one->object->meta;
    struct status_server *server = w->o.node->server;
    json_auto_t *object = NULL, *status = NULL;

    if (server == NULL || !status_server_is_fed(server) || one->kind == API_KIND_CONTROLLER_REVISION)
        return;
    status = status_of(w, one);
    if (status == NULL || (json_equal(status, one->told) && one->number == one->told_number))
        return;
    one->told_number = one->number;
    object = workloads_object(one->kind, meta->namespace, meta->name, w, ERR_IGNORED);
    if (object == NULL)
        return;
    status_server_object_event(server, (enum status_kind)(KIND_GENERIC + (int)one->kind), "MODIFIED", object);
    json_decref(one->told);
    one->told = json_incref(status);
}
