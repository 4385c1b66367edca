/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a label selector (apimachinery, pkg/apis/meta/v1/validation), beyond those of the table. */
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"

static bool check_expression(struct api_check *c, const json_t *one)
{
    const char *op = json_str(one, "operator");
    const bool many = str_eq(op, "In") || str_eq(op, "NotIn"),
               alone = str_eq(op, "Exists") || str_eq(op, "DoesNotExist"),
               values = json_array_size(json_object_get(one, "values")) > 0;

    if (many && !values)
        api_fault_at(c, "values", "required: must be specified when `operator` is 'In' or 'NotIn'");
    if (alone && values)
        api_fault_at(c, "values",
                     "not allowed: may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    return (many && values) || (alone && !values);
}

static bool check_expressions(struct api_check *c, const json_t *list)
{
    size_t outer = api_enter(c, "matchExpressions"), i;
    const char *key;
    json_t *one, *v;
    bool good = true;
    size_t k;

    json_array_foreach ((json_t *)(uintptr_t)list, i, one) {
        size_t mark = api_enter_index(c, i);

        key = json_str(one, "key");
        good = check_expression(c, one) && good && key != NULL &&
               api_format_rule(API_FMT_LABEL_KEY, key) == NULL;
        json_array_foreach (json_object_get(one, "values"), k, v)
            good = good && json_is_string(v) &&
                   api_format_rule(API_FMT_LABEL_VALUE, json_string_value(v)) == NULL;
        api_leave(c, mark);
    }
    api_leave(c, outer);
    return good;
}

bool api_validate_selector(struct api_check *c, const json_t *selector)
{
    const size_t before = c->faults;
    size_t mark = api_enter(c, "matchLabels");
    const char *key, *rule;
    bool good;
    json_t *v;

    json_object_foreach (json_object_get(selector, "matchLabels"), key, v) {
        rule = api_format_rule(API_FMT_LABEL_KEY, key);
        if (rule != NULL)
            api_fault(c, "%s %s", QUOTE(key), rule);
        rule = json_is_string(v) ? api_format_rule(API_FMT_LABEL_VALUE, json_string_value(v)) : NULL;
        if (rule != NULL)
            api_fault(c, "%s %s", QUOTE(json_string_value(v)), rule);
    }
    api_leave(c, mark);
    good = check_expressions(c, json_object_get(selector, "matchExpressions"));
    return good && c->faults == before;
}

/* The template's labels, also those that are not valid. */
static bool labels_of(struct api_check *c, const json_t *template_, struct api_kvs *ret)
{
    json_t *labels = json_at(template_, "metadata.labels"), *v;
    const char *key;

    *ret = (struct api_kvs){ .v = api_alloc(c, (json_object_size(labels) + 1) * sizeof(*ret->v)) };
    if (ret->v == NULL)
        return false;
    json_object_foreach (labels, key, v)
        if (json_is_string(v))
            ret->v[ret->n++] =
                (struct api_kv){ (char *)(uintptr_t)key, (char *)(uintptr_t)json_string_value(v) };
    api_kvs_sort(ret);
    return true;
}

void api_validate_selected(struct api_check *c, const struct api_label_selector *selector,
                           const json_t *template_)
{
    struct api_kvs labels;

    if (!labels_of(c, template_, &labels))
        return;
    if (selector == NULL || !api_label_selector_matches(selector, &labels))
        api_fault_at(c, "template.metadata.labels", "the labels do not match the selector");
}
