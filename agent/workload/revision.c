/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/revision.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

#define HISTORY "deployment.kubernetes.io/revision-history"
#define HISTORY_MAX 2000 /* bytes, the limit of the Deployment controller */
#define HASH_LABEL "pod-template-hash"

bool revision_has(enum api_kind kind)
{
    return kind == API_KIND_DEPLOYMENT || kind == API_KIND_STATEFUL_SET || kind == API_KIND_DAEMON_SET;
}

enum api_kind revision_kind(enum api_kind kind)
{
    return kind == API_KIND_DEPLOYMENT ? API_KIND_REPLICA_SET : API_KIND_CONTROLLER_REVISION;
}

/* ---- annotations ---- */

/* Annotations of a Deployment that are not copied to its ReplicaSets (Kubernetes' annotationsToSkip). */
static bool is_own(const char *key)
{
    static const char *const names[] = { "kubectl.kubernetes.io/last-applied-configuration",
                                         REVISION_ANNOTATION,
                                         HISTORY,
                                         REVISION_DESIRED,
                                         REVISION_MAX,
                                         "deprecated.deployment.rollback.to" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(key, names[i]) == 0)
            return true;
    return false;
}

static json_t *member(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    if (json_is_object(v))
        return v;
    json_object_set_new(o, key, json_object());
    return json_object_get(o, key);
}

bool revision_annotate(json_t *object, const json_t *owner)
{
    json_t *to = member(json_object_get(object, "metadata"), "annotations"), *v;
    bool changed = false;
    const char *key;

    json_object_foreach (json_at(owner, "metadata.annotations"), key, v) {
        if (is_own(key) || json_equal(json_object_get(to, key), v))
            continue;
        json_object_set(to, key, v);
        changed = true;
    }
    return changed;
}

/* ---- numbers ---- */

int64_t revision_number(const json_t *object)
{
    const char *text = json_str(json_at(object, "metadata.annotations"), REVISION_ANNOTATION);

    return text != NULL ? strtoll(text, NULL, 10) : json_int(object, "revision", 0);
}

/* Appends the present number to the earlier ones: "1,3". */
static bool remember(json_t *annotations, const char *number)
{
    const char *before = json_str(annotations, HISTORY);
    str_auto text = before != NULL ? str_printf("%s,%s", before, number) : strdup(number);
    const char *from = text;

    while (from != NULL && strlen(from) > HISTORY_MAX) {
        from = strchr(from, ',');
        from = from != NULL ? from + 1 : number;
    }
    return from != NULL && json_put_str(annotations, HISTORY, from);
}

bool revision_renumber(json_t *object, int64_t number)
{
    json_t *annotations = json_at(object, "metadata.annotations");
    const char *was = json_str(annotations, REVISION_ANNOTATION);
    char text[24];

    if (json_object_get(object, "revision") != NULL)
        return json_object_set_new(object, "revision", json_integer((json_int_t)number)) == 0;
    snprintf(text, sizeof(text), "%lld", (long long)number);
    return (was == NULL || remember(annotations, was)) &&
           json_put_str(annotations, REVISION_ANNOTATION, text);
}

/* ---- templates ---- */

json_t *revision_template(const json_t *object)
{
    json_t *found = json_at(object, "data.spec.template");

    return found != NULL ? found : json_at(object, "spec.template");
}

static json_t *bare(const json_t *template_)
{
    json_t *copy = json_deep_copy(template_), *meta = json_object_get(copy, "metadata"),
           *labels = json_object_get(meta, "labels");

    json_object_del(copy, "$patch");
    json_object_del(meta, "creationTimestamp");
    json_object_del(labels, HASH_LABEL);
    if (labels != NULL && json_object_size(labels) == 0)
        json_object_del(meta, "labels");
    if (meta != NULL && json_object_size(meta) == 0)
        json_object_del(copy, "metadata");
    return copy;
}

uint64_t revision_looks(const json_t *template_)
{
    json_auto_t *copy = template_ != NULL ? bare(template_) : NULL;
    str_auto text = copy != NULL ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    return text != NULL ? siphash_part(0, text, strlen(text)) | 1 : 0;
}

/* ---- the object ---- */

static json_t *metadata(enum api_kind kind, const json_t *owner, const char *uid, const char *hash)
{
    const json_t *meta = json_object_get(owner, "metadata"),
                 *labels = json_at(owner, "spec.template.metadata.labels");
    const char *name = json_str(meta, "name"), *namespace_ = json_str(meta, "namespace");
    str_auto own = str_printf("%s-%s", name, hash);
    json_t *o = json_pack(
        "{s:s, s:s*, s:o, s:{}, s:[{s:s, s:s, s:s, s:s, s:b, s:b}]}", "name", own, "namespace", namespace_,
        "labels", labels != NULL ? json_copy((json_t *)(uintptr_t)labels) : json_object(), "annotations",
        "ownerReferences", "apiVersion", api_kinds[kind].api_version, "kind", api_kinds[kind].kind, "name",
        name, "uid", uid, "controller", 1, "blockOwnerDeletion", 1);

    json_put_str(json_object_get(o, "labels"),
                 kind == API_KIND_DEPLOYMENT     ? HASH_LABEL
                 : kind == API_KIND_STATEFUL_SET ? "controller.kubernetes.io/hash"
                                                 : "controller-revision-hash",
                 hash);
    return o;
}

static json_t *replica_set_spec(const json_t *spec, const char *hash)
{
    json_t *template_ = json_deep_copy(json_object_get(spec, "template")),
           *selector = json_deep_copy(json_object_get(spec, "selector")),
           *delay = json_object_get(spec, "minReadySeconds");

    json_put_str(member(member(template_, "metadata"), "labels"), HASH_LABEL, hash);
    json_put_str(member(selector, "matchLabels"), HASH_LABEL, hash);
    return json_pack("{s:i, s:O*, s:o, s:o}", "replicas", 0, "minReadySeconds", delay, "selector", selector,
                     "template", template_);
}

static json_t *patch_of(const json_t *spec)
{
    json_t *template_ = json_deep_copy(json_object_get(spec, "template"));

    json_put_str(template_, "$patch", "replace");
    return json_pack("{s:{s:o}}", "spec", "template", template_);
}

json_t *revision_object(enum api_kind kind, const json_t *owner, const char *uid, const char *hash,
                        int64_t number)
{
    const struct api_kind_row *row = &api_kinds[revision_kind(kind)];
    const json_t *spec = json_object_get(owner, "spec");
    const bool set = kind == API_KIND_DEPLOYMENT;
    json_t *o = json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", row->api_version, "kind", row->kind,
                          "metadata", metadata(kind, owner, uid, hash), set ? "spec" : "data",
                          set ? replica_set_spec(spec, hash) : patch_of(spec));

    if (o == NULL)
        return NULL;
    revision_annotate(o, owner);
    if (!set)
        json_object_set_new(o, "revision", json_integer(0));
    if (revision_renumber(o, number))
        return o;
    json_decref(o);
    return NULL;
}
