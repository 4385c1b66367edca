/* SPDX-License-Identifier: Apache-2.0 */
/* expand - a pod of a workload: its template with a name, an owner and the labels of its kind. */
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"

#include <string.h>

static json_t *member(json_t *object, const char *name)
{
    json_t *v = json_object_get(object, name);

    if (v == NULL) {
        v = json_object();
        json_object_set_new(object, name, v);
    }
    return v;
}

static void put_owner(json_t *meta, const struct api_expansion *x)
{
    json_object_set_new(meta, "ownerReferences",
                        json_pack("[{s:s, s:s, s:s, s:s, s:b, s:b}]", "apiVersion", x->owner_api_version,
                                  "kind", x->owner_kind, "name", x->owner_name, "uid", x->owner_uid,
                                  "controller", 1, "blockOwnerDeletion", 1));
}

static void put_claim(json_t *spec, const struct api_kv *claim)
{
    json_t *volumes = json_object_get(spec, "volumes"), *one;
    size_t i;

    if (volumes == NULL) {
        volumes = json_array();
        json_object_set_new(spec, "volumes", volumes);
    }
    json_array_foreach (volumes, i, one)
        if (str_eq(json_str(one, "name"), claim->key)) {
            json_array_remove(volumes, i);
            break;
        }
    json_array_append_new(volumes, json_pack("{s:s, s:{s:s}}", "name", claim->key, "persistentVolumeClaim",
                                             "claimName", claim->value));
}

/* A container's own variable of this name stays. */
static void put_env(json_t *containers, const struct api_expansion *x)
{
    json_t *container;
    size_t i;

    json_array_foreach (containers, i, container) {
        json_t *env = json_object_get(container, "env");

        if (env == NULL) {
            env = json_array();
            json_object_set_new(container, "env", env);
        }
        if (json_named(env, x->index_env) == NULL)
            json_array_append_new(env, json_pack("{s:s, s:{s:{s:s}}}", "name", x->index_env, "valueFrom",
                                                 "fieldRef", "fieldPath", x->index_field));
    }
}

/* pkg/controller/daemon/util: AddOrUpdateDaemonPodTolerations. */
static const char *const of_daemons[][2] = {
    { "node.kubernetes.io/not-ready", "NoExecute" },
    { "node.kubernetes.io/unreachable", "NoExecute" },
    { "node.kubernetes.io/disk-pressure", "NoSchedule" },
    { "node.kubernetes.io/memory-pressure", "NoSchedule" },
    { "node.kubernetes.io/pid-pressure", "NoSchedule" },
    { "node.kubernetes.io/unschedulable", "NoSchedule" },
};

bool api_daemon_tolerates(const struct api_taint *taint)
{
    for (size_t i = 0; i < ARRAY_LEN(of_daemons); i++)
        if (strcmp(taint->key, of_daemons[i][0]) == 0 && strcmp(taint->effect, of_daemons[i][1]) == 0)
            return true;
    return false;
}

static void put_tolerations(json_t *spec)
{
    json_t *list = json_object_get(spec, "tolerations");

    if (list == NULL) {
        list = json_array();
        json_object_set_new(spec, "tolerations", list);
    }
    for (size_t i = 0; i < ARRAY_LEN(of_daemons); i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "key", of_daemons[i][0], "operator",
                                              "Exists", "effect", of_daemons[i][1]));
}

/* The template as a Pod; NULL: out of memory. */
static json_t *expanded(const struct api_pod *template_, const struct api_expansion *x)
{
    json_t *o = json_loads(template_->json, 0, NULL), *meta, *labels, *spec;

    if (o == NULL)
        return NULL;
    json_put_str(o, "apiVersion", "v1");
    json_put_str(o, "kind", "Pod");
    meta = member(o, "metadata");
    labels = member(meta, "labels");
    spec = member(o, "spec");
    json_put_str(meta, "name", x->name);
    json_put_str(meta, "namespace", x->namespace_);
    for (size_t i = 0; i < x->n_labels; i++)
        json_put_str(labels, x->labels[i].key, x->labels[i].value);
    for (size_t i = 0; i < x->n_annotations; i++)
        json_put_str(member(meta, "annotations"), x->annotations[i].key, x->annotations[i].value);
    if (x->of_daemon)
        put_tolerations(spec);
    if (x->index_env != NULL) {
        put_env(json_object_get(spec, "initContainers"), x);
        put_env(json_object_get(spec, "containers"), x);
    }
    for (size_t i = 0; i < x->n_claims; i++)
        put_claim(spec, &x->claims[i]);
    put_owner(meta, x);
    if (x->hostname != NULL)
        json_put_str(spec, "hostname", x->hostname);
    if (x->subdomain != NULL && json_object_get(spec, "subdomain") == NULL)
        json_put_str(spec, "subdomain", x->subdomain);
    return o;
}

enum err_code api_expand_pod(const struct api_pod *template_, const struct api_expansion *x,
                             struct api_pod **ret, struct err *e)
{
    struct api_problems problems = { 0 };
    struct api_check c = { .problems = &problems, .expanded = true };
    json_auto_t *o = expanded(template_, x);
    struct api_pod *pod = o != NULL ? api_build_pod(&c, &api_schema_pod, o) : NULL;

    if (o == NULL || c.no_memory)
        err_nomem(e);
    else if (pod == NULL)
        err_set(e, ERR_INVALID, "pod %s: %s: %s", x->name, problems.n > 0 ? problems.v[0].field : "?",
                problems.n > 0 ? problems.v[0].message : "it is not valid");
    else
        *ret = pod;
    api_problems_done(&problems);
    return e->code;
}

enum err_code api_make_generic(enum api_kind kind, json_t *object, struct api_generic **ret, struct err *e)
{
    struct api_problems problems = { 0 };
    struct api_check c = { .problems = &problems, .expanded = true };
    struct api_generic *made = api_build_generic(&c, kind, object);

    if (c.no_memory)
        err_nomem(e);
    else if (made == NULL)
        err_set(e, ERR_INVALID, "%s: %s: %s", api_kind_name(kind), problems.n > 0 ? problems.v[0].field : "?",
                problems.n > 0 ? problems.v[0].message : "it is not valid");
    else
        *ret = made;
    api_problems_done(&problems);
    return e->code;
}
