/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's fields are not kept in structs; their cross-field rules are checked on the JSON, whose
 * types the walk has already checked (a wrong type appears as absent here). */
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"

#include <string.h>

static const char *validate_scheduling_text(const json_t *object, const char *field)
{
    return json_string_value(json_object_get(object, field));
}

/* ---- label selectors ---- */
static void check_requirement(struct api_check *c, const json_t *r)
{
    const char *op = validate_scheduling_text(r, "operator");
    size_t n = json_array_size(json_object_get(r, "values"));

    if ((str_eq(op, "In") || str_eq(op, "NotIn")) && n == 0)
        api_fault_at(c, "values", "at least one is required with operator %s", op);
    if ((str_eq(op, "Exists") || str_eq(op, "DoesNotExist")) && n > 0)
        api_fault_at(c, "values", "not allowed with operator %s", op);
    if ((str_eq(op, "Gt") || str_eq(op, "Lt")) && n != 1)
        api_fault_at(c, "values", "exactly one is required with operator %s", op);
}

static void check_label_map(struct api_check *c, const json_t *map)
{
    const char *key;
    json_t *value;

    if (!json_is_object(map))
        return;
    json_object_foreach ((json_t *)map, key, value) {
        size_t mark = api_enter_key(c, key);
        const char *rule = api_format_rule(API_FMT_LABEL_KEY, key);
        if (rule != NULL)
            api_fault(c, "the key %s %s", QUOTE(key), rule);
        rule = json_is_string(value) ? api_format_rule(API_FMT_LABEL_VALUE, json_string_value(value)) : NULL;
        if (rule != NULL)
            api_fault(c, "the value %s %s", QUOTE(json_string_value(value)), rule);
        api_leave(c, mark);
    }
}

static void check_selector(struct api_check *c, const char *field, const json_t *selector)
{
    size_t outer = api_enter(c, field), inside = api_enter(c, "matchLabels"), i;
    json_t *r;

    check_label_map(c, json_object_get(selector, "matchLabels"));
    api_leave(c, inside);
    api_enter(c, "matchExpressions");
    json_array_foreach (json_object_get(selector, "matchExpressions"), i, r) {
        size_t inner = api_enter_index(c, i);
        check_requirement(c, r);
        api_leave(c, inner);
    }
    api_leave(c, outer);
}

static bool selector_has_key(const json_t *selector, const char *key)
{
    json_t *r;
    size_t i;

    if (json_object_get(json_object_get(selector, "matchLabels"), key) != NULL)
        return true;
    json_array_foreach (json_object_get(selector, "matchExpressions"), i, r) {
        if (str_eq(validate_scheduling_text(r, "key"), key))
            return true;
    }
    return false;
}

/* matchLabelKeys and similar require a selector, and must not repeat its keys. */
static void check_label_keys(struct api_check *c, const json_t *object, const char *field,
                             bool repeat_allowed)
{
    const json_t *keys = json_object_get(object, field), *selector = json_object_get(object, "labelSelector");
    size_t outer = api_enter(c, field), i;
    json_t *key;

    if (json_array_size(keys) > 0 && selector == NULL)
        api_fault(c, "not allowed without labelSelector");
    json_array_foreach (keys, i, key) {
        size_t mark = api_enter_index(c, i);
        if (!repeat_allowed && json_is_string(key) && selector_has_key(selector, json_string_value(key)))
            api_fault(c, "%s is in labelSelector, too", QUOTE(json_string_value(key)));
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

/* ---- affinity ---- */
static void check_match_field(struct api_check *c, const json_t *r)
{
    const char *op = validate_scheduling_text(r, "operator"), *key = validate_scheduling_text(r, "key"),
               *value, *rule;
    const json_t *values = json_object_get(r, "values");

    if (op != NULL && !str_eq(op, "In") && !str_eq(op, "NotIn"))
        api_fault_at(c, "operator", "%s is not supported here, allowed are In and NotIn", QUOTE(op));
    else if (json_array_size(values) != 1)
        api_fault_at(c, "values", "exactly one is required");
    if (key != NULL && strcmp(key, "metadata.name") != 0)
        api_fault_at(c, "key", "%s is not supported, allowed is metadata.name", QUOTE(key));
    value = json_string_value(json_array_get(values, 0));
    rule = value != NULL ? api_format_rule(API_FMT_SUBDOMAIN, value) : NULL;
    if (rule != NULL)
        api_fault_at(c, "values[0]", "%s %s", QUOTE(value), rule);
}

static void check_node_term(struct api_check *c, const json_t *term, bool check_values)
{
    size_t outer = api_enter(c, "matchExpressions"), i, k;
    json_t *r, *value;

    json_array_foreach (json_object_get(term, "matchExpressions"), i, r) {
        size_t mark = api_enter_index(c, i);
        check_requirement(c, r);
        json_array_foreach (json_object_get(r, "values"), k, value) {
            size_t inner = api_enter(c, "values");
            const char *s = json_string_value(value);
            const char *rule = check_values && s != NULL ? api_format_rule(API_FMT_LABEL_VALUE, s) : NULL;
            api_enter_index(c, k);
            if (rule != NULL)
                api_fault(c, "%s %s", QUOTE(s), rule);
            api_leave(c, inner);
        }
        api_leave(c, mark);
    }
    api_leave(c, outer);
    outer = api_enter(c, "matchFields");
    json_array_foreach (json_object_get(term, "matchFields"), i, r) {
        size_t mark = api_enter_index(c, i);
        check_match_field(c, r);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

static const char required_field[] = "requiredDuringSchedulingIgnoredDuringExecution";
static const char preferred_field[] = "preferredDuringSchedulingIgnoredDuringExecution";

static void check_node_affinity(struct api_check *c, const json_t *affinity)
{
    size_t outer = api_enter(c, "nodeAffinity"), list = api_enter(c, required_field), i;
    json_t *term;

    api_enter(c, "nodeSelectorTerms");
    json_array_foreach (json_object_get(json_object_get(affinity, required_field), "nodeSelectorTerms"), i,
                        term) {
        size_t mark = api_enter_index(c, i);
        check_node_term(c, term, true);
        api_leave(c, mark);
    }
    api_leave(c, list);
    api_enter(c, preferred_field);
    json_array_foreach (json_object_get(affinity, preferred_field), i, term) {
        size_t mark = api_enter_index(c, i);
        api_enter(c, "preference");
        check_node_term(c, json_object_get(term, "preference"), true);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

static void check_pod_term(struct api_check *c, const json_t *term)
{
    const json_t *keys = json_object_get(term, "matchLabelKeys");
    json_t *key;
    size_t i;

    check_selector(c, "labelSelector", json_object_get(term, "labelSelector"));
    check_selector(c, "namespaceSelector", json_object_get(term, "namespaceSelector"));
    check_label_keys(c, term, "matchLabelKeys", false);
    check_label_keys(c, term, "mismatchLabelKeys", true);
    json_array_foreach (keys, i, key) {
        size_t outer = api_enter(c, "matchLabelKeys");
        api_enter_index(c, i);
        if (json_is_string(key) &&
            json_has(json_object_get(term, "mismatchLabelKeys"), json_string_value(key)))
            api_fault(c, "%s is in mismatchLabelKeys, too", QUOTE(json_string_value(key)));
        api_leave(c, outer);
    }
}

static void check_pod_affinity(struct api_check *c, const char *field, const json_t *affinity)
{
    size_t outer = api_enter(c, field), list = api_enter(c, required_field), i;
    json_t *term;

    json_array_foreach (json_object_get(affinity, required_field), i, term) {
        size_t mark = api_enter_index(c, i);
        check_pod_term(c, term);
        api_leave(c, mark);
    }
    api_leave(c, list);
    api_enter(c, preferred_field);
    json_array_foreach (json_object_get(affinity, preferred_field), i, term) {
        size_t mark = api_enter_index(c, i);
        api_enter(c, "podAffinityTerm");
        check_pod_term(c, json_object_get(term, "podAffinityTerm"));
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

/* ---- tolerations, spreading, readiness ---- */
static void check_toleration(struct api_check *c, const json_t *t)
{
    const char *op = validate_scheduling_text(t, "operator"), *value = validate_scheduling_text(t, "value"),
               *effect = validate_scheduling_text(t, "effect"), *rule;

    if (json_is_object(t) && json_object_get(t, "key") == NULL && !str_eq(op, "Exists"))
        api_fault_at(c, "operator", "must be Exists when there is no key");
    if (json_object_get(t, "tolerationSeconds") != NULL && !str_eq(effect, "NoExecute"))
        api_fault_at(c, "effect", "must be NoExecute when tolerationSeconds is set");
    if (str_eq(op, "Exists") && value != NULL && value[0] != '\0')
        api_fault_at(c, "value", "must be empty with operator Exists");
    rule = !str_eq(op, "Exists") && value != NULL ? api_format_rule(API_FMT_LABEL_VALUE, value) : NULL;
    if (rule != NULL)
        api_fault_at(c, "value", "%s %s", QUOTE(value), rule);
}

static void check_spread(struct api_check *c, const json_t *list, size_t index)
{
    const json_t *s = json_array_get(list, index);
    const char *key = validate_scheduling_text(s, "topologyKey"),
               *action = validate_scheduling_text(s, "whenUnsatisfiable");

    for (size_t i = 0; i < index && key != NULL && action != NULL; i++) {
        const json_t *earlier = json_array_get(list, i);
        if (str_eq(key, validate_scheduling_text(earlier, "topologyKey")) &&
            str_eq(action, validate_scheduling_text(earlier, "whenUnsatisfiable"))) {
            api_fault(c, "the pair of topologyKey %s and whenUnsatisfiable %s is given twice", QUOTE(key),
                      action);
            break;
        }
    }
    if (json_object_get(s, "minDomains") != NULL && action != NULL && strcmp(action, "DoNotSchedule") != 0)
        api_fault_at(c, "minDomains", "only allowed with whenUnsatisfiable DoNotSchedule");
    check_label_keys(c, s, "matchLabelKeys", false);
    check_selector(c, "labelSelector", json_object_get(s, "labelSelector"));
}

void api_validate_scheduling(struct api_check *c, const json_t *spec)
{
    const json_t *affinity = json_object_get(spec, "affinity");
    const json_t *list = json_object_get(spec, "tolerations");
    size_t outer = api_enter(c, "affinity");

    check_node_affinity(c, json_object_get(affinity, "nodeAffinity"));
    check_pod_affinity(c, "podAffinity", json_object_get(affinity, "podAffinity"));
    check_pod_affinity(c, "podAntiAffinity", json_object_get(affinity, "podAntiAffinity"));
    api_leave(c, outer);
    api_enter(c, "tolerations");
    for (size_t i = 0; i < json_array_size(list); i++) {
        size_t mark = api_enter_index(c, i);
        check_toleration(c, json_array_get(list, i));
        api_leave(c, mark);
    }
    api_leave(c, outer);
    list = json_object_get(spec, "topologySpreadConstraints");
    api_enter(c, "topologySpreadConstraints");
    for (size_t i = 0; i < json_array_size(list); i++) {
        size_t mark = api_enter_index(c, i);
        check_spread(c, list, i);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}
