/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an update may change: in a Pod, in an immutable ConfigMap or Secret, and the selectors of workloads
 * (validation.go of core and apps).  An apiserver shows the difference of the two Go structs at the end of a
 * Pod's message; this does not.
 */
#include "agent/api/patch/write.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

#define POD_RULE                                                                                             \
    "Forbidden: pod updates may not change fields other than "                                               \
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"                \
    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "      \
    "(allow it to be set to 1 if it was previously negative)"

static bool add(json_t *causes, json_t *cause)
{
    return cause != NULL && json_array_append_new(causes, cause) == 0;
}

static bool same(const json_t *a, const json_t *b)
{
    return a == b || (a != NULL && b != NULL && json_equal(a, b));
}

static bool same_member(const json_t *a, const json_t *b, const char *name)
{
    return same(json_object_get(a, name), json_object_get(b, name));
}

/* ---- pods ---- */

static bool check_deadline(const json_t *from, const json_t *to, json_t *causes)
{
    const json_t *before = json_object_get(from, "activeDeadlineSeconds"),
                 *after = json_object_get(to, "activeDeadlineSeconds");

    if (before == NULL || same(before, after))
        return true;
    if (after == NULL)
        return add(causes,
                   api_status_cause("FieldValueInvalid", "spec.activeDeadlineSeconds",
                                    "Invalid value: null: must not update from a positive integer to nil "
                                    "value"));
    if (json_integer_value(after) < json_integer_value(before))
        return true;
    return add(causes, api_status_cause("FieldValueInvalid", "spec.activeDeadlineSeconds",
                                        "Invalid value: %lld: must be less than or equal to previous value",
                                        (long long)json_integer_value(after)));
}

static bool check_gates(const json_t *from, const json_t *to, json_t *causes)
{
    json_t *gate;
    size_t i;

    json_array_foreach (json_object_get(to, "schedulingGates"), i, gate) {
        const char *name = json_str(gate, "name");
        str_auto field = str_printf("spec.schedulingGates[%zu].name", i);

        if (json_named(json_object_get(from, "schedulingGates"), name) != NULL)
            continue;
        if (field == NULL ||
            !add(causes,
                 api_status_cause("FieldValueForbidden", field,
                                  "Forbidden: only deletion is allowed, but found new scheduling gate '%s'",
                                  name != NULL ? name : "")))
            return false;
    }
    return true;
}

static bool same_toleration(const json_t *a, const json_t *b)
{
    static const char *const fields[] = { "key", "operator", "value", "effect" };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!same_member(a, b, fields[i]))
            return false;
    return true;
}

static bool check_tolerations(const json_t *from, const json_t *to, json_t *causes)
{
    json_t *old_one, *new_one;
    size_t i, k;

    json_array_foreach (json_object_get(from, "tolerations"), i, old_one) {
        bool found = false;

        json_array_foreach (json_object_get(to, "tolerations"), k, new_one)
            found = found || same_toleration(old_one, new_one);
        if (!found)
            return add(causes,
                       api_status_cause("FieldValueForbidden", "spec.tolerations",
                                        "Forbidden: existing toleration can not be modified except its "
                                        "tolerationSeconds"));
    }
    return true;
}

static bool take_member(json_t *to, const json_t *from, const char *name)
{
    json_t *v = json_object_get(from, name);

    if (v != NULL)
        return json_object_set(to, name, v) == 0;
    json_object_del(to, name);
    return true;
}

/* Whether two specs differ in more than an update may change.  False: out of memory. */
static bool differs_otherwise(const json_t *from, const json_t *to, bool *ret)
{
    static const char *const lists[] = { "containers", "initContainers" };
    json_t *munged = json_deep_copy(to), *container;
    bool gated = json_array_size(json_object_get(from, "schedulingGates")) > 0, ok = munged != NULL;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        json_array_foreach (json_object_get(munged, lists[k]), i, container)
            ok = ok && take_member(container, json_array_get(json_object_get(from, lists[k]), i), "image");
    ok = ok && take_member(munged, from, "activeDeadlineSeconds") &&
         take_member(munged, from, "tolerations") && take_member(munged, from, "schedulingGates");
    if (json_int(from, "terminationGracePeriodSeconds", 0) < 0 &&
        json_int(to, "terminationGracePeriodSeconds", 0) == 1)
        ok = ok && take_member(munged, from, "terminationGracePeriodSeconds");
    if (gated) /* narrowed before the pod has a node */
        ok = ok && take_member(munged, from, "nodeSelector") && take_member(munged, from, "affinity");
    *ret = ok && !json_equal(munged, from);
    json_decref(munged);
    return ok;
}

static bool check_pod(const json_t *from, const json_t *to, json_t *causes)
{
    static const char *const lists[] = { "containers", "initContainers" };
    bool differs = false;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        str_auto field = str_printf("spec.%s", lists[k]);

        if (json_array_size(json_object_get(from, lists[k])) ==
            json_array_size(json_object_get(to, lists[k])))
            continue;
        return field != NULL && add(causes, api_status_cause("FieldValueForbidden", field,
                                                             "Forbidden: pod updates may not add or remove "
                                                             "containers"));
    }
    if (!check_deadline(from, to, causes) || !check_gates(from, to, causes) ||
        !check_tolerations(from, to, causes) || !differs_otherwise(from, to, &differs))
        return false;
    if (!differs || json_array_size(causes) > 0)
        return true;
    return add(causes, api_status_cause("FieldValueForbidden", "spec", POD_RULE));
}

/* ---- ConfigMaps and Secrets ---- */

static bool check_immutable(const json_t *from, const json_t *to, json_t *causes)
{
    static const char *const fields[] = { "data", "binaryData" };
    static const char text[] = "Forbidden: field is immutable when `immutable` is set";

    if (!json_flag(from, "immutable"))
        return true;
    if (!json_flag(to, "immutable") &&
        !add(causes, api_status_cause("FieldValueForbidden", "immutable", text)))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!same_member(from, to, fields[i]) &&
            !add(causes, api_status_cause("FieldValueForbidden", fields[i], text)))
            return false;
    return true;
}

/* ---- workloads ---- */

static bool add_value(json_t *causes, const char *field, const json_t *v, const char *rule)
{
    mem_auto char *text = v != NULL ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("null");

    return text != NULL &&
           add(causes, api_status_cause("FieldValueInvalid", field, "Invalid value: %s: %s", text, rule));
}

/* The labels of the template must have those of the selector; the selector never changes. */
static bool check_selector(const json_t *from, const json_t *to, json_t *causes)
{
    const json_t *selector = json_object_get(to, "selector"), *v;
    json_t *labels = json_object_get(json_object_get(json_object_get(to, "template"), "metadata"), "labels");
    json_t *wanted = json_object_get(selector, "matchLabels");
    bool matches = true;
    const char *name;
    json_t *value;

    json_object_foreach (wanted, name, value) {
        v = json_object_get(labels, name);
        matches = matches && v != NULL && json_equal(v, value);
    }
    if (!matches && !add_value(causes, "spec.template.metadata.labels", labels,
                               "`selector` does not match template `labels`"))
        return false;
    return same_member(from, to, "selector") ||
           add_value(causes, "spec.selector", selector, "field is immutable");
}

bool api_update_rules(const struct api_patch_kind *kind, const json_t *live, const json_t *object,
                      json_t *causes)
{
    const json_t *from = json_object_get(live, "spec"), *to = json_object_get(object, "spec");

    if (strcmp(kind->row->kind, "Pod") == 0)
        return check_pod(from, to, causes);
    if (strcmp(kind->row->kind, "ConfigMap") == 0 || strcmp(kind->row->kind, "Secret") == 0)
        return check_immutable(live, object, causes);
    if (strcmp(kind->row->group, "apps") == 0)
        return check_selector(from, to, causes);
    return true;
}
