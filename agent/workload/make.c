/* SPDX-License-Identifier: Apache-2.0 */
/* make - creates a pod of a workload, with its name, labels and claims, in the store. */
#include "agent/api/job_labels.h"
#include "agent/pod/core/pod.h"
#include "agent/workload/internal.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define CLAIMS_MAX 32 /* volumeClaimTemplates of a StatefulSet */
#define LABELS_MAX 8
#define HOSTNAME_MAX 63

const char workload_index_label[] = "batch.kubernetes.io/job-completion-index";
static const char index_field[] = "metadata.labels['batch.kubernetes.io/job-completion-index']";

static char *text(const char *constant) /* struct api_kv has no const */
{
    return (char *)(uintptr_t)constant;
}

const char *workload_hash_label(enum api_kind kind)
{
    return kind == API_KIND_DEPLOYMENT ? "pod-template-hash" : "controller-revision-hash";
}

/* ---- claims ---- */

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

/* ---- names and labels ---- */

struct making {
    char name[300], number[16], index[16], hostname[300];
    char owner[300], owner_uid[WORKLOAD_UID_SIZE];
    struct api_kv labels[LABELS_MAX], annotations[1];
    struct own_claims claims;
};

static void name_it(struct making *m, const struct workload *one, unsigned number, unsigned index)
{
    const struct api_generic *g = one->object;
    const bool hashed = one->kind == API_KIND_DEPLOYMENT || one->kind == API_KIND_DAEMON_SET;

    snprintf(m->number, sizeof(m->number), "%u", number);
    snprintf(m->index, sizeof(m->index), "%u", index);
    if (one->kind == API_KIND_JOB && g->workload->indexed)
        snprintf(m->name, sizeof(m->name), "%s-%u-%u", g->meta.name, index, number);
    else
        snprintf(m->name, sizeof(m->name), "%s%s%s-%u", g->meta.name, hashed ? "-" : "",
                 hashed ? workload_hash(one) : "", number);
    if (one->kind == API_KIND_STATEFUL_SET)
        snprintf(m->hostname, sizeof(m->hostname), "%s", m->name);
    else
        snprintf(m->hostname, sizeof(m->hostname), "%.*s-%u", HOSTNAME_MAX - 5, g->meta.name, index);
}

static void label(struct api_expansion *x, struct making *m, const char *key, const char *value)
{
    m->labels[x->n_labels++] = (struct api_kv){ text(key), text(value) };
}

static void label_it(struct api_expansion *x, struct making *m, const struct workload *one, bool past)
{
    const struct api_generic *g = one->object;

    if (one->kind != API_KIND_REPLICA_SET)
        label(x, m, workload_hash_label(one->kind), past ? one->before : workload_hash(one));
    x->of_daemon = one->kind == API_KIND_DAEMON_SET;
    if (one->kind == API_KIND_STATEFUL_SET) {
        label(x, m, "statefulset.kubernetes.io/pod-name", m->name);
        label(x, m, "apps.kubernetes.io/pod-index", m->number);
        x->hostname = m->hostname;
        x->subdomain = g->workload->service_name[0] != '\0' ? g->workload->service_name : NULL;
    }
    if (one->kind != API_KIND_JOB)
        return;
    label(x, m, "batch.kubernetes.io/job-name", g->meta.name);
    label(x, m, "job-name", g->meta.name);
    label(x, m, API_JOB_UID_LABEL, one->uid);
    label(x, m, "controller-uid", one->uid);
    if (!g->workload->indexed)
        return;
    label(x, m, workload_index_label, m->index);
    m->annotations[0] = (struct api_kv){ text(workload_index_label), m->index };
    x->n_annotations = 1;
    x->hostname = m->hostname;
    x->index_env = "JOB_COMPLETION_INDEX";
    x->index_field = index_field;
}

/* A Deployment's pods belong to its ReplicaSet, whether or not that could be kept. */
static void own_it(struct api_expansion *x, struct making *m, const struct workload *one)
{
    const struct api_meta *meta = &one->object->meta;
    const bool by_set = one->kind == API_KIND_DEPLOYMENT;
    const struct api_kind_row *row = &api_kinds[by_set ? API_KIND_REPLICA_SET : one->kind];

    snprintf(m->owner, sizeof(m->owner), "%s%s%s", meta->name, by_set ? "-" : "",
             by_set ? workload_hash(one) : "");
    workload_uid(row->id, meta->namespace, m->owner, m->owner_uid);
    x->owner_api_version = row->api_version;
    x->owner_kind = row->kind;
    x->owner_name = m->owner;
    x->owner_uid = m->owner_uid;
}

/* The ReplicaSet of a Deployment speaks of its pods. */
static void tell(struct workloads *w, const struct workload *one, const struct api_pod *pod, bool made)
{
    struct workload *rev =
        revision_of(w, one, api_kvs_get(&pod->meta.labels, workload_hash_label(one->kind)));

    if (rev != NULL && made)
        rev->revision->made++;
    else if (rev != NULL)
        rev->revision->removed++;
    workload_event_pod(w, rev != NULL && one->kind == API_KIND_DEPLOYMENT ? rev : one, pod, made);
}

/* `past`: of the revision before the rollout. */
static void put(struct workloads *w, const struct workload *one, const struct api_expansion *x, bool past,
                struct err *e)
{
    struct api_object o = { .kind = API_KIND_POD, .document = 1 };
    struct api_generic *older = NULL;

    if (past && revision_past(w, one, &older, e) != ERR_OK)
        return;
    ERR_IGNORE(api_expand_pod(older != NULL ? older->workload->pods.pod : workload_template(w, one), x,
                              &o.pod, e)); /* *e has it */
    api_generic_unref(older);
    if (e->code != ERR_OK)
        return;
    if (src_store_put(w->store, &o, e) == ERR_OK) {
        log_info("pod of a workload added", F_STR("kind", api_kind_name(one->kind)),
                 F_STR("name", one->object->meta.name), F_STR("pod", x->name));
        tell(w, one, o.pod, true);
    }
    api_pod_unref(o.pod);
}

void workload_make(struct workloads *w, struct workload *one, unsigned number, unsigned index)
{
    const struct api_generic *g = one->object;
    struct making m = { .claims = { .n = 0 } };
    struct api_expansion x = { .namespace_ = g->meta.namespace,
                               .name = m.name,
                               .labels = m.labels,
                               .annotations = m.annotations,
                               .claims = m.claims.v,
                               .n_claims = g->workload->claim_names.n };
    const bool past = revision_holds_back(w, one, number);
    const struct api_pod *other;
    struct err e = { 0 };

    name_it(&m, one, number, index);
    label_it(&x, &m, one, past);
    other = src_store_pod(w->store, API_FROM_FOLDER, g->meta.namespace, m.name);
    own_it(&x, &m, one);
    if (other != NULL && workload_of_pod(w, other) != one)
        err_set(&e, ERR_EXISTS, "pod %.250s: another manifest has a pod of this name", m.name);
    else if (make_claims(w, one, number, &m.claims, &e) == ERR_OK)
        put(w, one, &x, past, &e);
    if (e.code != ERR_OK && strcmp(one->problem, e.text) != 0) {
        log_error("cannot create a pod of a workload", F_STR("kind", api_kind_name(one->kind)),
                  F_STR("name", g->meta.name), F_ERR(&e));
        workload_event_failed(w, one, m.name, e.text);
    }
    snprintf(one->problem, sizeof(one->problem), "%.299s", e.code != ERR_OK ? e.text : "");
    own_claims_done(&m.claims);
}

void workload_remove(struct workloads *w, struct workload *one, const struct pod *p)
{
    const struct api_meta *meta = &p->api->meta;

    tell(w, one, p->api, false);
    src_store_remove(w->store, API_FROM_FOLDER, API_KIND_POD, meta->namespace, meta->name);
}
