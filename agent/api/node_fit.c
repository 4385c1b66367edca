/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet's NodeAffinity and TaintToleration predicates: rules of component-helpers/scheduling/corev1. */
#include "agent/api/types.h"

#include "base/buf.h"
#include "base/parse.h"

#include <string.h>

static bool node_fit_has_value(const struct api_strs *values, const char *text)
{
    for (size_t i = 0; i < values->n; i++) {
        if (strcmp(values->v[i], text) == 0)
            return true;
    }
    return false;
}

static bool compares(const struct api_node_requirement *r, const char *value)
{
    struct err e = { 0 };
    int64_t have, want;

    if (value == NULL || r->values.n != 1 ||
        parse_i64(value, INT64_MIN, INT64_MAX, &have, "label", &e) != ERR_OK ||
        parse_i64(r->values.v[0], INT64_MIN, INT64_MAX, &want, "value", &e) != ERR_OK)
        return false;
    return r->op == API_NODE_GREATER ? have > want : have < want;
}

static bool node_fit_holds(const struct api_node_requirement *r, const char *value)
{
    switch (r->op) {
    case API_NODE_IN:
        return value != NULL && node_fit_has_value(&r->values, value);
    case API_NODE_NOT_IN:
        return value == NULL || !node_fit_has_value(&r->values, value);
    case API_NODE_EXISTS:
        return value != NULL;
    case API_NODE_ABSENT:
        return value == NULL;
    case API_NODE_GREATER:
    case API_NODE_LESS:
        return compares(r, value);
    }
    return false;
}

bool api_label_selector_matches(const struct api_label_selector *s, const struct api_kvs *labels)
{
    for (size_t i = 0; i < s->labels.n; i++)
        if (!str_eq(api_kvs_get(labels, s->labels.v[i].key), s->labels.v[i].value))
            return false;
    for (size_t i = 0; i < s->n_expressions; i++)
        if (!node_fit_holds(&s->expressions[i], api_kvs_get(labels, s->expressions[i].key)))
            return false;
    return true;
}

static bool term_holds(const struct api_node_term *t, const char *node_name, const struct api_kvs *labels)
{
    if (t->n_labels == 0 && t->n_fields == 0)
        return false;
    for (size_t i = 0; i < t->n_labels; i++) {
        if (!node_fit_holds(&t->labels[i], api_kvs_get(labels, t->labels[i].key)))
            return false;
    }
    for (size_t i = 0; i < t->n_fields; i++) { /* validation allows only metadata.name */
        if (!node_fit_holds(&t->fields[i], node_name))
            return false;
    }
    return true;
}

bool api_node_terms_match(const struct api_node_term *terms, size_t n, const char *node_name,
                          const struct api_kvs *labels)
{
    for (size_t i = 0; i < n; i++) {
        if (term_holds(&terms[i], node_name, labels))
            return true;
    }
    return false;
}

bool api_pod_fits_node(const struct api_pod_spec *spec, const char *node_name, const struct api_kvs *labels)
{
    for (size_t i = 0; i < spec->node_selector.n; i++) {
        if (!str_eq(api_kvs_get(labels, spec->node_selector.v[i].key), spec->node_selector.v[i].value))
            return false;
    }
    return !spec->has_node_terms ||
           api_node_terms_match(spec->node_terms, spec->n_node_terms, node_name, labels);
}

static bool tolerates(const struct api_toleration *t, const struct api_taint *taint)
{
    if (t->effect != NULL && strcmp(t->effect, taint->effect) != 0)
        return false;
    if (t->key != NULL && strcmp(t->key, taint->key) != 0)
        return false;
    switch (t->op) {
    case API_TOLERATE_EXISTS:
        return true;
    case API_TOLERATE_EQUAL:
        break;
    }
    return strcmp(t->value != NULL ? t->value : "", taint->value) == 0;
}

bool api_pod_tolerates(const struct api_pod_spec *spec, const struct api_taint *taint)
{
    for (size_t k = 0; k < spec->n_tolerations; k++)
        if (tolerates(&spec->tolerations[k], taint))
            return true;
    return false;
}

const struct api_taint *api_pod_untolerated(const struct api_pod_spec *spec, const struct api_taint *taints,
                                            size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(taints[i].effect, "NoExecute") == 0 && !api_pod_tolerates(spec, &taints[i]))
            return &taints[i];
    return NULL;
}

const struct api_taint *api_pod_unschedulable(const struct api_pod_spec *spec, const struct api_taint *taints,
                                              size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(taints[i].effect, "PreferNoSchedule") != 0 && !api_pod_tolerates(spec, &taints[i]))
            return &taints[i];
    return NULL;
}

int64_t api_pod_stays_seconds(const struct api_pod_spec *spec, const struct api_taint *taint)
{
    int64_t least = INT64_MAX;
    bool any = false;

    for (size_t k = 0; k < spec->n_tolerations; k++) {
        const struct api_toleration *t = &spec->tolerations[k];

        if (!tolerates(t, taint))
            continue;
        any = true;
        if (t->has_seconds && t->seconds < least)
            least = t->seconds > 0 ? t->seconds : 0;
    }
    return any ? least : 0;
}
