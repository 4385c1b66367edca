/* SPDX-License-Identifier: Apache-2.0 */
/* A Node that is written: its labels, annotations and taints (validateNodeTaints of core/validation). */
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

#define PAIRS_MAX 4096

/* A map of strings, borrowed: free(ret->v). False: out of memory, or it is none. */
static bool pairs_of(struct api_check *c, const char *field, const json_t *from, struct api_kvs *ret)
{
    const char *key;
    json_t *v;

    ret->n = 0;
    ret->v = calloc(json_object_size(from) + 1, sizeof(*ret->v));
    if (ret->v == NULL) {
        c->no_memory = true;
        return false;
    }
    if (from != NULL && (!json_is_object(from) || json_object_size(from) > PAIRS_MAX))
        api_fault_at(c, field, "must be a map of at most %d strings", PAIRS_MAX);
    json_object_foreach ((json_t *)(uintptr_t)from, key, v) {
        if (!json_is_string(v))
            api_fault_at(c, field, "must be a map of strings");
        else if (ret->n < PAIRS_MAX)
            ret->v[ret->n++] =
                (struct api_kv){ (char *)(uintptr_t)key, (char *)(uintptr_t)json_string_value(v) };
    }
    return true;
}

static void check_meta(struct api_check *c, const json_t *meta)
{
    struct api_meta m = { 0 };
    size_t mark = api_enter(c, "metadata");
    const bool ok = pairs_of(c, "labels", json_object_get(meta, "labels"), &m.labels) &&
                    pairs_of(c, "annotations", json_object_get(meta, "annotations"), &m.annotations);

    api_leave(c, mark);
    if (ok)
        api_validate_meta(c, &m);
    free(m.labels.v);
    free(m.annotations.v);
}

static void check_effect(struct api_check *c, const json_t *taint)
{
    const char *effect = json_str(taint, "effect");

    if (effect == NULL || effect[0] == '\0')
        api_fault_at(c, "effect", "required");
    else if (strcmp(effect, "NoSchedule") != 0 && strcmp(effect, "PreferNoSchedule") != 0 &&
             strcmp(effect, "NoExecute") != 0)
        api_fault_at(c, "effect",
                     "%s is not supported, allowed are NoExecute, NoSchedule and PreferNoSchedule",
                     QUOTE(effect));
}

static bool is_given_before(const json_t *list, size_t index)
{
    const json_t *taint = json_array_get(list, index), *other;
    size_t i;

    json_array_foreach (list, i, other)
        if (i < index && str_eq(json_str(other, "key"), json_str(taint, "key")) &&
            str_eq(json_str(other, "effect"), json_str(taint, "effect")))
            return true;
    return false;
}

static void check_taint(struct api_check *c, const json_t *list, size_t index)
{
    const json_t *taint = json_array_get(list, index);
    const char *key = json_str(taint, "key"), *value = json_str(taint, "value"),
               *effect = json_str(taint, "effect"), *rule;
    size_t mark = api_enter_index(c, index);

    rule = api_format_rule(API_FMT_LABEL_KEY, key != NULL ? key : "");
    if (rule != NULL)
        api_fault_at(c, "key", "%s %s", QUOTE(key != NULL ? key : ""), rule);
    rule = value != NULL ? api_format_rule(API_FMT_LABEL_VALUE, value) : NULL;
    if (rule != NULL)
        api_fault_at(c, "value", "%s %s", QUOTE(value), rule);
    check_effect(c, taint);
    if (is_given_before(list, index)) { /* as Go shows the struct */
        json_auto_t *shown =
            json_pack("{s:s, s:s, s:s, s:n}", "Key", key != NULL ? key : "", "Value",
                      value != NULL ? value : "", "Effect", effect != NULL ? effect : "", "TimeAdded");
        str_auto text = json_text(shown);

        api_fault(c, "the taint %s has the key and effect of another one", text != NULL ? text : "");
    }
    api_leave(c, mark);
}

enum err_code api_check_node(const json_t *object, struct api_problems *problems, struct err *e)
{
    struct api_check c = { .problems = problems };
    const json_t *taints = json_object_get(json_object_get(object, "spec"), "taints");
    size_t outer;

    check_meta(&c, json_object_get(object, "metadata"));
    outer = api_enter(&c, "spec");
    if (json_array_size(taints) > API_LIST_MAX) {
        api_fault_at(&c, "taints", "%zu are too many, at most %d are allowed", json_array_size(taints),
                     API_LIST_MAX);
    } else {
        api_enter(&c, "taints");
        for (size_t i = 0; i < json_array_size(taints); i++)
            check_taint(&c, taints, i);
    }
    api_leave(&c, outer);
    if (c.no_memory)
        err_nomem(e);
    api_check_done(&c);
    return e->code;
}
