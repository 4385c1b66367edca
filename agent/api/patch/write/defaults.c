/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of the kinds: those of the tables, and those that depend on other fields. */
#include "agent/api/manifest/decode.h"
#include "agent/api/patch/write/default_service.h"
#include "agent/api/patch/write/write.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* Sets a member that is not there.  `value` is stolen. */
static bool set_default(json_t *object, const char *name, json_t *value)
{
    if (json_object_get(object, name) == NULL)
        return json_object_set_new(object, name, value) == 0;
    json_decref(value);
    return true;
}

static json_t *value_of(const struct api_row *row)
{
    switch (row->type) {
    case API_INT32:
    case API_INT64:
        return json_integer(strtoll(row->otherwise, NULL, 10));
    case API_BOOL:
        return json_boolean(strcmp(row->otherwise, "true") == 0);
    case API_OBJECT:
        return json_object();
    default: /* Go writes a time that is not set as null */
        return strcmp(row->otherwise, "null") == 0 ? json_null() : json_string(row->otherwise);
    }
}

/* ---- from the tables ---- */

static bool default_object(const struct api_schema *schema, json_t *object, bool template);

static bool default_row(const struct api_row *row, json_t *object, bool template)
{
    bool meta = row->nested == &api_schema_object_meta || row->nested == &api_schema_cluster_meta;
    bool of_pods = template && strcmp(row->name, "enableServiceLinks") == 0; /* not of templates */
    json_t *v, *element;
    size_t i;

    if (row->otherwise != NULL && !of_pods && !set_default(object, row->name, value_of(row)))
        return false;
    v = json_object_get(object, row->name);
    if (meta) /* the path of a request contains the namespace */
        return true;
    if (row->type == API_OBJECT && json_is_object(v))
        return default_object(row->nested, v, template || strcmp(row->name, "template") == 0);
    if (row->type == API_LIST)
        json_array_foreach (v, i, element)
            if (json_is_object(element) && !default_object(row->nested, element, template))
                return false;
    return true;
}

static bool default_object(const struct api_schema *schema, json_t *object, bool template)
{
    for (; schema != NULL; schema = schema->base)
        for (const struct api_row *row = schema->rows; row->name != NULL; row++)
            if (!default_row(row, object, template))
                return false;
    return true;
}

/* ---- of a pod's spec ---- */

static bool default_pull_policy(json_t *holder, const char *image_field, const char *policy_field)
{
    const char *image = json_str(holder, image_field);

    if (image == NULL || image[0] == '\0')
        return true;
    return set_default(
        holder, policy_field,
        json_string(api_pull_policy_default(image) == API_PULL_ALWAYS ? "Always" : "IfNotPresent"));
}

/* Requests that are not given are the limits. */
static bool default_requests(json_t *container)
{
    json_t *resources = json_object_get(container, "resources"), *v;
    json_t *limits = json_object_get(resources, "limits");
    const char *name;

    if (json_object_size(limits) == 0)
        return true;
    if (!set_default(resources, "requests", json_object()))
        return false;
    json_object_foreach (limits, name, v)
        if (!set_default(json_object_get(resources, "requests"), name, json_incref(v)))
            return false;
    return true;
}

static bool default_pod_spec(json_t *spec, bool template)
{
    static const char *const lists[] = { "containers", "initContainers", "ephemeralContainers" };
    json_t *v;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        json_array_foreach (json_object_get(spec, lists[k]), i, v)
            if (!default_pull_policy(v, "image", "imagePullPolicy") || (!template && !default_requests(v)))
                return false;
    json_array_foreach (json_object_get(spec, "volumes"), i, v)
        if ((json_object_size(v) == 1 && json_object_get(v, "name") != NULL &&
             !set_default(v, "emptyDir", json_object())) ||
            !default_pull_policy(json_object_get(v, "image"), "reference", "pullPolicy"))
            return false;
    if (json_str(spec, "serviceAccountName") != NULL)
        return set_default(spec, "serviceAccount", json_incref(json_object_get(spec, "serviceAccountName")));
    if (json_str(spec, "serviceAccount") != NULL)
        return set_default(spec, "serviceAccountName", json_incref(json_object_get(spec, "serviceAccount")));
    return true;
}

/* ---- of the kinds ---- */

static bool default_grace(json_t *spec)
{
    return json_int(spec, "terminationGracePeriodSeconds", 0) >= 0 ||
           json_object_set_new(spec, "terminationGracePeriodSeconds", json_integer(1)) == 0;
}

static bool default_rolling(json_t *strategy, const char *a, json_t *a_value, const char *b, json_t *b_value)
{
    bool rolls = str_eq(json_str(strategy, "type"), "RollingUpdate");
    json_t *rolling;
    bool ok = !rolls || set_default(strategy, "rollingUpdate", json_object());

    rolling = rolls ? json_object_get(strategy, "rollingUpdate") : NULL;
    if (rolling != NULL && ok) {
        ok = set_default(rolling, a, a_value);
        if (b != NULL)
            ok = set_default(rolling, b, b_value) && ok;
        return ok;
    }
    json_decref(a_value);
    json_decref(b_value);
    return ok;
}

/* With a limit for each index, the whole Job has practically no limit: batch/v1, defaults.go. */
static json_int_t backoff_limit(const json_t *spec)
{
    return json_object_get(spec, "backoffLimitPerIndex") != NULL ? INT32_MAX : 6;
}

static bool default_conditions(json_t *policy)
{
    json_t *rule, *one;
    size_t i, k;

    json_array_foreach (json_object_get(policy, "rules"), i, rule)
        json_array_foreach (json_object_get(rule, "onPodConditions"), k, one)
            if (!set_default(one, "status", json_string("True")))
                return false;
    return true;
}

static bool default_job(json_t *spec)
{
    bool counted = json_object_get(spec, "completions") != NULL;

    if (!counted && json_object_get(spec, "parallelism") == NULL &&
        !(set_default(spec, "completions", json_integer(1)) &&
          set_default(spec, "parallelism", json_integer(1))))
        return false;
    return set_default(spec, "parallelism", json_integer(1)) &&
           set_default(spec, "backoffLimit", json_integer(backoff_limit(spec))) &&
           set_default(spec, "completionMode", json_string("NonIndexed")) &&
           set_default(spec, "suspend", json_false()) && set_default(spec, "manualSelector", json_false()) &&
           set_default(spec, "podReplacementPolicy",
                       json_string(json_object_get(spec, "podFailurePolicy") != NULL
                                       ? "Failed"
                                       : "TerminatingOrFailed")) &&
           default_conditions(json_object_get(spec, "podFailurePolicy"));
}

/* The members of a given rollingUpdate. Nothing here or there updates several pods of a StatefulSet at once.
 */
static bool default_set(json_t *rolling)
{
    json_object_del(rolling, "maxUnavailable");
    return rolling == NULL || set_default(rolling, "partition", json_integer(0));
}

/* A StatefulSet that names no type of update gets that type's parameters, too. */
static bool begin_set(json_t *spec)
{
    json_t *strategy = json_object_get(spec, "updateStrategy");
    const char *type = json_str(strategy, "type");

    if (type != NULL && type[0] != '\0')
        return true;
    return set_default(spec, "updateStrategy", json_object()) &&
           set_default(json_object_get(spec, "updateStrategy"), "rollingUpdate", json_object());
}

static bool default_kind(const char *kind, json_t *spec)
{
    json_t *template = json_object_get(json_object_get(spec, "template"), "spec"), *jobs;

    if (str_eq(kind, "Pod"))
        return default_grace(spec) && default_pod_spec(spec, false);
    if (json_is_object(template) && !default_pod_spec(template, true))
        return false;
    if (str_eq(kind, "Deployment"))
        return default_rolling(json_object_get(spec, "strategy"), "maxUnavailable", json_string("25%"),
                               "maxSurge", json_string("25%"));
    if (str_eq(kind, "DaemonSet"))
        return default_rolling(json_object_get(spec, "updateStrategy"), "maxUnavailable", json_integer(1),
                               "maxSurge", json_integer(0));
    if (str_eq(kind, "StatefulSet"))
        return default_set(json_at(spec, "updateStrategy.rollingUpdate"));
    if (str_eq(kind, "Job"))
        return default_job(spec);
    if (str_eq(kind, "CronJob")) {
        jobs = json_object_get(json_object_get(spec, "jobTemplate"), "spec");
        template = json_object_get(json_object_get(jobs, "template"), "spec");
        return !json_is_object(template) || default_pod_spec(template, true);
    }
    return !str_eq(kind, "Service") || default_service(spec);
}

/* By which policies of networks find a namespace. */
static bool default_namespace(json_t *object)
{
    json_t *meta = json_object_get(object, "metadata");
    const char *name = json_str(meta, "name");

    return name == NULL ||
           (set_default(meta, "labels", json_object()) &&
            set_default(json_object_get(meta, "labels"), "kubernetes.io/metadata.name", json_string(name)));
}

enum err_code api_object_default_own(const struct api_patch_kind *kind, json_t *object, struct err *e)
{
    json_t *spec = json_object_get(object, "spec");

    if (str_eq(kind->row->kind, "StatefulSet") && json_is_object(spec) && !begin_set(spec))
        return err_nomem(e);
    if (!default_object(kind->schema, object, false))
        return err_nomem(e);
    if (str_eq(kind->row->kind, "Namespace") && !default_namespace(object))
        return err_nomem(e);
    spec = json_object_get(object, "spec");
    return !json_is_object(spec) || default_kind(kind->row->kind, spec) ? ERR_OK : err_nomem(e);
}

enum err_code api_object_allocate(const struct api_patch_kind *kind, json_t *object, struct err *e)
{
    json_t *spec = json_object_get(object, "spec");

    if (!str_eq(kind->row->kind, "Service") || !json_is_object(spec) || default_service_allocated(spec))
        return ERR_OK;
    return err_nomem(e);
}

enum err_code api_object_default(const struct api_patch_kind *kind, json_t *object, struct err *e)
{
    if (api_object_default_own(kind, object, e) != ERR_OK)
        return e->code;
    return api_object_allocate(kind, object, e);
}
