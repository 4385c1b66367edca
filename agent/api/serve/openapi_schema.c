/* SPDX-License-Identifier: Apache-2.0 */
/* The types of OpenAPI documents, made from the tables that check manifests. */
#include "agent/api/serve/internal.h"

#include "agent/api/schema/about.h"
#include "base/codec/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_SIZE = 200 };

#define CORE "io.k8s.api.core.v1."
#define META "io.k8s.apimachinery.pkg.apis.meta.v1."
#define QUANTITY "io.k8s.apimachinery.pkg.api.resource.Quantity"
#define INT_OR_STRING "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

/* The packages of types that are not in the core group; the first whose `begin` the name begins with. */
static const struct {
    const char *begin, *package;
} packages[] = {
    { "ObjectMeta", META },
    { "OwnerReference", META },
    { "ManagedFieldsEntry", META },
    { "ListMeta", META },
    { "LabelSelector", META },
    { "PriorityClass", "io.k8s.api.scheduling.v1." },
    { "RuntimeClass", "io.k8s.api.node.v1." },
    { "Overhead", "io.k8s.api.node.v1." },
    { "Scheduling", "io.k8s.api.node.v1." },
    { "Deployment", "io.k8s.api.apps.v1." },
    { "ControllerRevision", "io.k8s.api.apps.v1." },
    { "ReplicaSet", "io.k8s.api.apps.v1." },
    { "StatefulSet", "io.k8s.api.apps.v1." },
    { "DaemonSet", "io.k8s.api.apps.v1." },
    { "RollingUpdate", "io.k8s.api.apps.v1." },
    { "Job", "io.k8s.api.batch.v1." },
    { "CronJob", "io.k8s.api.batch.v1." },
    { "PodFailurePolicy", "io.k8s.api.batch.v1." },
    { "SuccessPolicy", "io.k8s.api.batch.v1." },
    { "NodeMetrics", "io.k8s.metrics.pkg.apis.metrics.v1beta1." },
    { "PodMetrics", "io.k8s.metrics.pkg.apis.metrics.v1beta1." },
    { "Lease", "io.k8s.api.coordination.v1." },
    { "HorizontalPodAutoscaler", "io.k8s.api.autoscaling.v2." },
    { "Ingress", "io.k8s.api.networking.v1." },
    { "NetworkPolicy", "io.k8s.api.networking.v1." },
    { "PodDisruptionBudget", "io.k8s.api.policy.v1." },
    { "ClusterRole", "io.k8s.api.rbac.v1." },
    { "Role", "io.k8s.api.rbac.v1." },
    { "StorageClass", "io.k8s.api.storage.v1." },
    { "CSIDriver", "io.k8s.api.storage.v1." },
    { "CSIDriverSpec", "io.k8s.api.storage.v1." },
    { "SelfSubjectReview", "io.k8s.api.authentication.v1." },
    { "SelfSubject", "io.k8s.api.authorization.v1." },
};

/* Required in a manifest, but not by the API's own documents, which also describe parts of objects. */
static const struct {
    const char *schema, *field;
} not_required[] = {
    { "ObjectMeta", "name" },
    { "Container", "image" },
    { "ConfigMapEnvSource", "name" },
    { "SecretEnvSource", "name" },
    { "ConfigMapKeySelector, SecretKeySelector", "name" },
    { "ConfigMapVolumeSource", "name" },
    { "SecretVolumeSource", "secretName" },
    { "ConfigMapProjection", "name" },
    { "SecretProjection", "name" },
    { "PodDNSConfigOption", "name" },
    { "ExecAction", "command" },
    { "ContainerRestartRule", "exitCodes" },
    { "ImageVolumeSource", "reference" },
};

static bool is_required(const struct api_schema *owner, const struct api_row *row)
{
    for (size_t i = 0; i < ARRAY_LEN(not_required); i++) {
        if (strcmp(owner->name, not_required[i].schema) == 0 && strcmp(row->name, not_required[i].field) == 0)
            return false;
    }
    return row->flags & API_REQUIRED;
}

/* ---- names ---- */

static size_t common_start(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] != '\0' && tolower((unsigned char)a[n]) == tolower((unsigned char)b[n]))
        n++;
    return n;
}

/* The name of a type without its package. For a table that describes two types ("A, B"), the field's name
 * determines the type; "ObjectMeta (without namespace)" is ObjectMeta. */
static void short_name(const struct api_schema *schema, const char *field, char ret[NAME_MAX_SIZE])
{
    const char *first = schema->name, *comma = strstr(first, ", ");

    if (comma != NULL && common_start(comma + 2, field) > common_start(first, field))
        first = comma + 2;
    snprintf(ret, NAME_MAX_SIZE, "%.*s", (int)strcspn(first, ", ("), first);
}

static void full_name(const char *name, char ret[NAME_MAX_SIZE])
{
    const char *package = CORE;

    for (size_t i = 0; i < ARRAY_LEN(packages); i++) {
        if (str_starts(name, packages[i].begin)) {
            package = packages[i].package;
            break;
        }
    }
    snprintf(ret, NAME_MAX_SIZE, "%s%s", package, name);
}

static json_t *reference(const struct api_openapi *doc, const char *name)
{
    char text[NAME_MAX_SIZE + 32];

    snprintf(text, sizeof(text), "#/%s/%s", doc->v2 ? "definitions" : "components/schemas", name);
    return json_pack("{s:s}", "$ref", text);
}

/* ---- fields ---- */

static json_t *list_of(json_t *items)
{
    return json_pack("{s:s, s:o}", "type", "array", "items", items);
}

static json_t *map_of(json_t *values)
{
    return json_pack("{s:s, s:o}", "type", "object", "additionalProperties", values);
}

static json_t *plain(const char *type, const char *format)
{
    return format == NULL ? json_pack("{s:s}", "type", type)
                          : json_pack("{s:s, s:s}", "type", type, "format", format);
}

static json_t *anything(const struct api_openapi *doc)
{
    return doc->v2 ? plain("object", NULL)
                   : json_pack("{s:s, s:b}", "type", "object", "x-kubernetes-preserve-unknown-fields", 1);
}

static json_t *type_of(struct api_openapi *doc, const struct api_row *row)
{
    char name[NAME_MAX_SIZE], full[NAME_MAX_SIZE];

    switch (row->type) {
    case API_STRING:
    case API_ENUM:
        return plain("string", NULL);
    case API_INT32:
        return plain("integer", "int32");
    case API_INT64:
        return plain("integer", "int64");
    case API_BOOL:
        return plain("boolean", NULL);
    case API_QUANTITY:
        return reference(doc, QUANTITY);
    case API_OBJECT:
    case API_LIST:
        short_name(row->nested, row->name, name);
        full_name(name, full);
        api_openapi_define(doc, row->nested, name, NULL);
        return row->type == API_LIST ? list_of(reference(doc, full)) : reference(doc, full);
    case API_STRINGS:
        return list_of(plain("string", NULL));
    case API_INT32S:
        return list_of(plain("integer", "int32"));
    case API_INT64S:
        return list_of(plain("integer", "int64"));
    case API_STRING_MAP:
        return map_of(plain("string", NULL));
    case API_BYTES_MAP:
        return map_of(plain("string", "byte"));
    case API_RESOURCES:
        return map_of(reference(doc, QUANTITY));
    case API_INT_OR_STRING:
        return reference(doc, INT_OR_STRING);
    case API_ANY:
        break;
    }
    return anything(doc);
}

static void add_default(json_t **o, const struct api_row *row)
{
    if (row->otherwise == NULL)
        return;
    if (row->type == API_STRING || row->type == API_ENUM)
        api_put(o, "default", json_string(row->otherwise));
    else if (row->type == API_INT32 || row->type == API_INT64)
        api_put(o, "default", json_integer(strtoll(row->otherwise, NULL, 10)));
    else if (row->type == API_BOOL)
        api_put(o, "default", json_boolean(strcmp(row->otherwise, "true") == 0));
}

static void add_enum(json_t **o, const struct api_row *row)
{
    json_t *list = json_array();

    for (const struct api_value *v = row->values; v->text != NULL; v++)
        api_append(&list, json_string(v->text));
    api_put(o, "enum", list);
}

/* "a,b" */
static json_t *names_of(const char *text)
{
    json_t *list = json_array();

    for (; *text != '\0'; text += strcspn(text, ",") + (text[strcspn(text, ",")] != '\0'))
        api_append(&list, json_stringn(text, strcspn(text, ",")));
    return list;
}

/* How kubectl merges the field, and the server an apply: the same columns that agent/api/patch obeys. */
static void add_merge(json_t **o, const struct api_row *row)
{
    const char *keys = row->list_keys != NULL ? row->list_keys : row->merge_key;
    const bool merged = row->merge_key != NULL || row->flags & API_MERGED,
               retain = row->flags & API_RETAIN_KEYS;

    if (row->merge_key != NULL)
        api_put(o, "x-kubernetes-patch-merge-key", json_string(row->merge_key));
    if (merged || retain)
        api_put(o, "x-kubernetes-patch-strategy",
                json_string(!merged  ? "retainKeys"
                            : retain ? "merge,retainKeys"
                                     : "merge"));
    if (row->type == API_LIST && keys != NULL && keys[0] != '\0') {
        api_put(o, "x-kubernetes-list-type", json_string("map"));
        api_put(o, "x-kubernetes-list-map-keys", names_of(keys));
    } else if (row->type == API_LIST || row->type == API_STRINGS || row->type == API_INT32S ||
               row->type == API_INT64S) {
        api_put(o, "x-kubernetes-list-type", json_string(row->flags & API_SET ? "set" : "atomic"));
    } else if (row->flags & API_ATOMIC) {
        api_put(o, "x-kubernetes-map-type", json_string("atomic"));
    }
}

/* A reference beside other members is only allowed inside allOf, in version 3. */
static json_t *with_members(const struct api_openapi *doc, json_t *type)
{
    if (doc->v2 || json_object_get(type, "$ref") == NULL)
        return type;
    return json_pack("{s:[o]}", "allOf", type);
}

static json_t *property(struct api_openapi *doc, const struct api_schema *owner, const struct api_row *row)
{
    buf_auto about = BUF_INIT(64 * 1024);
    json_t *o = with_members(doc, type_of(doc, row));

    api_add_about(&about, owner, row);
    api_put(&o, "description", json_string(about.p));
    add_default(&o, row);
    if (row->values != NULL)
        add_enum(&o, row);
    add_merge(&o, row);
    return o;
}

/* ---- types ---- */

static json_t *kind_mark(const struct api_kind_row *kind)
{
    return json_pack("{s:s, s:s, s:s}", "group", kind->group, "kind", kind->kind, "version", kind->version);
}

/* The members that each object has; a table may say more of them. */
static void add_object_members(struct api_openapi *doc, json_t **properties)
{
    static const struct api_row members[] = {
        ROW("apiVersion", API_STRING),
        ROW("kind", API_STRING),
        ROW("metadata", API_OBJECT, .nested = &api_schema_pod),
        { 0 },
    };
    const struct api_row *metadata = api_row_find(&api_schema_pod, "metadata");

    for (const struct api_row *row = members; row->name != NULL; row++) {
        if (json_object_get(*properties, row->name) == NULL)
            api_put(properties, row->name,
                    property(doc, &api_schema_pod, row->nested != NULL ? metadata : row));
    }
}

void api_openapi_define(struct api_openapi *doc, const struct api_schema *schema, const char *name,
                        const struct api_kind_row *kind)
{
    json_t *properties = json_object(), *required = json_array(), *o = json_object();
    char full[NAME_MAX_SIZE];
    const char *about;

    full_name(name, full);
    if (doc->schemas == NULL || json_object_get(doc->schemas, full) != NULL) {
        json_decref(properties);
        json_decref(required);
        json_decref(o);
        return;
    }
    api_put(&doc->schemas, full, json_object()); /* so that a type within itself ends here */
    for (const struct api_schema *s = schema; s != NULL; s = s->base) {
        for (const struct api_row *row = s->rows; row->name != NULL; row++) {
            if (s != schema && json_object_get(properties, row->name) != NULL)
                continue;
            api_put(&properties, row->name, property(doc, s, row));
            if (is_required(s, row))
                api_append(&required, json_string(row->name));
        }
    }
    if (kind != NULL)
        add_object_members(doc, &properties);
    api_put(&o, "type", json_string("object"));
    /* Several kinds share one table, and a table may describe several types. */
    about = api_about_type(name);
    if (about[0] == '\0' && schema != NULL)
        about = api_about_type(schema->name);
    api_put(&o, "description", json_string(about));
    api_put(&o, "properties", properties);
    if (json_array_size(required) > 0)
        api_put(&o, "required", required);
    else
        json_decref(required);
    if (schema != NULL && schema->atomic)
        api_put(&o, "x-kubernetes-map-type", json_string("atomic"));
    if (kind != NULL)
        api_put(&o, "x-kubernetes-group-version-kind", json_pack("[o]", kind_mark(kind)));
    api_put(&doc->schemas, full, o);
}

/* The types without a table. */
void api_openapi_define_scalars(struct api_openapi *doc)
{
    static const char quantity[] =
        "A number with an optional suffix: m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or "
        "an exponent: 500m, 1.5Gi, 2e3.";
    static const char int_or_string[] = "A number, or a text such as a port's name or a percentage.";

    api_put(&doc->schemas, QUANTITY,
            doc->v2 ? json_pack("{s:s, s:s}", "type", "string", "description", quantity)
                    : json_pack("{s:[{s:s}, {s:s}], s:s}", "oneOf", "type", "string", "type", "number",
                                "description", quantity));
    api_put(&doc->schemas, INT_OR_STRING,
            doc->v2 ? json_pack("{s:s, s:s, s:s}", "type", "string", "format", "int-or-string", "description",
                                int_or_string)
                    : json_pack("{s:s, s:[{s:s}, {s:s}], s:s}", "format", "int-or-string", "oneOf", "type",
                                "integer", "type", "string", "description", int_or_string));
}
