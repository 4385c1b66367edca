/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generic - decodes workloads, claims, and kinds that are only shown. The template of a workload is decoded
 * as the pod that it describes, at its place in the object, so that problems name their field and line.
 */
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

/* ---- templates ---- */

/* A hash of the template as written, so that a version of the agent with other defaults does not replace all
 * pods. Ten characters without vowels, as Kubernetes' (no words). */
static bool hash_template(const json_t *template_, char ret[API_HASH_SIZE])
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    static const unsigned char key[SIPHASH_KEY_SIZE] = "pod-template-ha";
    const json_t *meta = json_object_get(template_, "metadata");
    json_auto_t *o =
        json_pack("{s:O?, s:O?, s:O?}", "labels", json_object_get(meta, "labels"), "annotations",
                  json_object_get(meta, "annotations"), "spec", json_object_get(template_, "spec"));
    str_auto text = o != NULL ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    uint64_t hash;

    if (text == NULL)
        return false;
    hash = siphash(key, text, strlen(text));
    for (size_t i = 0; i < API_HASH_SIZE - 1; i++, hash /= sizeof(alphabet) - 1)
        ret[i] = alphabet[hash % (sizeof(alphabet) - 1)];
    ret[API_HASH_SIZE - 1] = '\0';
    return true;
}

/* The template's containers may mount volumes of volumeClaimTemplates; each pod gets its own claim there.
 * Returns how many are added at the end of the pod's volumes. */
static size_t add_claims(struct api_check *c, const json_t *spec, json_t *pod_spec)
{
    const json_t *templates = json_object_get(spec, "volumeClaimTemplates");
    json_t *volumes = json_object_get(pod_spec, "volumes"), *one;
    size_t i, n = 0;

    if (!json_is_array(templates) || !json_is_object(pod_spec) ||
        (volumes != NULL && !json_is_array(volumes)))
        return 0;
    if (volumes == NULL) {
        volumes = json_array();
        json_object_set_new(pod_spec, "volumes", volumes);
    }
    json_array_foreach ((json_t *)(uintptr_t)templates, i, one) {
        const char *name = json_str(json_object_get(one, "metadata"), "name");

        if (name == NULL || json_named(volumes, name) != NULL)
            continue;
        c->no_memory =
            json_array_append_new(volumes, json_pack("{s:s, s:{s:s}}", "name", name, "persistentVolumeClaim",
                                                     "claimName", name)) != 0 ||
            c->no_memory;
        n++;
    }
    return n;
}

/* The manifest is shown without them. */
static void drop_claims(json_t *pod_spec, size_t n)
{
    json_t *volumes = json_object_get(pod_spec, "volumes");

    for (; n > 0 && json_array_size(volumes) > 0; n--)
        json_array_remove(volumes, json_array_size(volumes) - 1);
    if (json_is_array(volumes) && json_array_size(volumes) == 0)
        json_object_del(pod_spec, "volumes");
}

/* ---- defaults of pods that templates have not ---- */

/* The limits that were taken as requests. */
static void drop_requests(json_t *spec, const json_t *before)
{
    static const char *const lists[] = { "containers", "initContainers" };
    json_t *now, *was, *container, *v;
    const char *name;
    void *next;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        json_array_foreach (json_object_get(spec, lists[k]), i, container) {
            now = json_object_get(container, "resources");
            was = json_object_get(
                json_object_get(json_array_get(json_object_get(before, lists[k]), i), "resources"),
                "requests");
            json_object_foreach_safe (json_object_get(now, "requests"), next, name, v)
                if (json_object_get(was, name) == NULL)
                    json_object_del(json_object_get(now, "requests"), name);
            if (was == NULL)
                json_object_del(now, "requests");
        }
}

static void drop_pod_defaults(json_t *spec, const json_t *before)
{
    if (json_object_get(before, "enableServiceLinks") == NULL)
        json_object_del(spec, "enableServiceLinks");
    drop_requests(spec, before);
}

/* An absent one is empty, as for Go's decoder: what it lacks is reported. */
static json_t *member(struct api_check *c, json_t *holder, const char *name)
{
    json_t *v = json_object_get(holder, name);

    if (!json_is_object(holder) || (v != NULL && !json_is_null(v)))
        return v;
    if (json_object_set_new(holder, name, json_object()) != 0)
        c->no_memory = true;
    return json_object_get(holder, name);
}

/* A StatefulSet that names no type of update gets that type's parameters, too. */
static void default_update(struct api_check *c, json_t *spec)
{
    json_t *strategy = member(c, spec, "updateStrategy");
    const char *type = json_str(strategy, "type");

    if (json_is_object(strategy) && (type == NULL || type[0] == '\0'))
        member(c, strategy, "rollingUpdate");
}

static struct api_pod *build_template(struct api_check *c, json_t *spec, char ret_hash[API_HASH_SIZE])
{
    json_t *template_ = member(c, spec, "template");
    size_t mark = api_enter(c, "spec"), claims;
    json_auto_t *before = json_deep_copy(json_object_get(template_, "spec"));
    struct api_pod *pod = NULL;

    api_enter(c, "template");
    if (json_is_object(template_)) {
        if (!hash_template(template_, ret_hash))
            c->no_memory = true;
        claims = add_claims(c, spec, json_object_get(template_, "spec"));
        pod = api_build_pod(c, &api_schema_pod_template, template_);
        drop_claims(json_object_get(template_, "spec"), claims);
        drop_pod_defaults(json_object_get(template_, "spec"), before);
    }
    api_leave(c, mark);
    return pod;
}

/* ---- rules ---- */

/* The namespace of an object is a part of host names. */
static void check_namespace(struct api_check *c, const char *name)
{
    const char *rule = name == NULL ? NULL : api_format_rule(API_FMT_LABEL, name);
    size_t mark = api_enter(c, "metadata");

    if (name != NULL && strchr(name, '.') != NULL)
        api_fault_at(c, "name", "must not contain dots");
    else if (rule != NULL)
        api_fault_at(c, "name", "%s %s", QUOTE(name), rule);
    api_leave(c, mark);
}

/* ---- building ---- */

static void take_claim_names(struct api_check *c, struct api_workload *w, const json_t *templates)
{
    json_t *one;
    size_t i;

    w->claim_names.v = api_alloc(c, (json_array_size(templates) + 1) * sizeof(*w->claim_names.v));
    if (w->claim_names.v == NULL)
        return;
    json_array_foreach (templates, i, one) {
        const char *name = json_str(json_object_get(one, "metadata"), "name");

        if (name != NULL && (w->claim_names.v[w->claim_names.n] = api_strdup(c, name)) != NULL)
            w->claim_names.n++;
    }
}

static void check_generic(struct api_check *c, enum api_kind kind, const struct api_generic *g,
                          const json_t *object, bool of_cron_job)
{
    const json_t *spec = json_object_get(object, "spec");
    size_t mark;

    if (!of_cron_job) /* an apiserver looks at them when a Job is made */
        api_validate_meta(c, &g->meta);
    if (kind == API_KIND_NAMESPACE)
        check_namespace(c, g->meta.name);
    if (kind == API_KIND_STATEFUL_SET)
        api_validate_set_name(c, &g->meta);
    else if (kind == API_KIND_JOB && !of_cron_job)
        api_validate_job_name(c, g, object);
    else if (kind == API_KIND_CRON_JOB)
        api_validate_cron_job_name(c, &g->meta);
    if (kind == API_KIND_SERVICE && !c->served)
        api_validate_service(c, &g->meta, spec);
    mark = api_enter(c, "spec");
    if (kind == API_KIND_CLAIM && g->claim != NULL)
        api_validate_claim(c, spec);
    else if (kind == API_KIND_PERSISTENT_VOLUME && g->pv != NULL)
        api_validate_pv(c, g->pv, spec);
    else if (g->workload == NULL)
        ;
    else if (kind == API_KIND_JOB)
        api_validate_job(c, g, spec, of_cron_job);
    else if (kind == API_KIND_CRON_JOB)
        api_validate_cron_job(c, g);
    else
        api_validate_workload(c, kind, g, spec);
    api_leave(c, mark);
}

/* An apiserver sets a Job's defaults when a CronJob creates it, and shows the CronJob without them. */
static void drop_job_defaults(json_t *spec, const json_t *before)
{
    static const char *const names[] = { "backoffLimit",   "completionMode", "completions",
                                         "manualSelector", "parallelism",    "podReplacementPolicy",
                                         "suspend" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (json_object_get(before, names[i]) == NULL)
            json_object_del(spec, names[i]);
}

static struct api_generic *build(struct api_check *c, enum api_kind kind, const struct api_schema *schema,
                                 json_t *object)
{
    struct api_building b;
    struct api_generic *g = api_begin(c, &b, &API_LAYOUT(struct api_generic)), *job = NULL;
    json_t *spec = api_kind_is_workload(kind) || kind == API_KIND_CLAIM ? member(c, object, "spec")
                                                                        : json_object_get(object, "spec"),
           *below = kind == API_KIND_CRON_JOB ? member(c, spec, "jobTemplate") : NULL;
    json_auto_t *before = json_copy(json_object_get(below, "spec"));
    char hash[API_HASH_SIZE] = "";
    struct api_pod *pod = NULL;
    size_t mark;

    if (g == NULL)
        return NULL;
    if (kind == API_KIND_CRON_JOB && json_is_object(below)) {
        mark = api_enter(c, "spec");
        api_enter(c, "jobTemplate");
        job = build(c, API_KIND_JOB, &api_schema_job_template, below);
        api_leave(c, mark);
    } else if (api_kind_is_workload(kind)) {
        if (kind == API_KIND_JOB)
            api_job_defaults(c, spec);
        if (kind == API_KIND_STATEFUL_SET)
            default_update(c, spec);
        pod = build_template(c, spec, hash);
    }
    if (!c->no_memory)
        api_walk(c, schema, object, g);
    if (g->workload == NULL) {
        api_pod_unref(take_ptr(&pod));
        api_generic_unref(take_ptr(&job));
    } else {
        g->workload->pods.pod = pod;
        memcpy(g->workload->pods.hash, hash, sizeof(hash));
        g->workload->job = job;
        take_claim_names(c, g->workload, json_object_get(spec, "volumeClaimTemplates"));
    }
    if (kind == API_KIND_CRON_JOB)
        drop_job_defaults(json_object_get(below, "spec"), before);
    if (!c->no_memory)
        check_generic(c, kind, g, object, schema == &api_schema_job_template);
    if (api_is_good(c, &b)) {
        g->json = api_keep_json(c, object);
        api_keep_ignored(c, &g->ignored);
    }
    if (api_end(c, &b))
        return g;
    api_generic_unref(g);
    return NULL;
}

struct api_generic *api_build_generic(struct api_check *c, enum api_kind kind, json_t *object)
{
    if ((api_kind_is_workload(kind) || kind == API_KIND_CLAIM) && c->static_node != NULL) {
        api_fault_at(c, "kind", "%s: a node of a cluster gets its %s from the cluster",
                     QUOTE(api_kind_name(kind)), kind == API_KIND_CLAIM ? "claims" : "workloads");
        return NULL;
    }
    return build(c, kind, api_kinds[kind].schema, object);
}
