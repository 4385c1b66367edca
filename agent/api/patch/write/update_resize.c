/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that an update of a Pod's subresources resize and ephemeralcontainers may make (validation.go
 * of core).
 */
#include "agent/api/patch/write/write.h"
#include "agent/api/resources.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

static const char *const lists[] = { "containers", "initContainers" };

static bool add(json_t *causes, json_t *cause)
{
    return cause != NULL && json_array_append_new(causes, cause) == 0;
}

static json_t *amounts(const json_t *container, const char *what)
{
    return json_object_get(json_object_get(container, "resources"), what);
}

static bool resizable(const char *name)
{
    return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0;
}

/* ---- classes ---- */

static bool same_amount(const json_t *a, const json_t *b)
{
    return a != NULL && b != NULL && json_equal(a, b);
}

/* NULL: no amount that can be read. */
static const struct quantity *amount(const json_t *container, const char *what, const char *name,
                                     struct quantity *room)
{
    const char *text = json_str(amounts(container, what), name);

    return text != NULL && quantity_parse(text, room, ERR_IGNORED) == ERR_OK ? room : NULL;
}

static void qos_add(struct api_qos_sum *sum, const json_t *container)
{
    struct quantity room[4];
    const struct quantity *const requests[] = { amount(container, "requests", "cpu", &room[0]),
                                                amount(container, "requests", "memory", &room[1]) };
    const struct quantity *const limits[] = { amount(container, "limits", "cpu", &room[2]),
                                              amount(container, "limits", "memory", &room[3]) };

    api_qos_add(sum, requests, limits);
}

static enum api_qos class_of(const json_t *spec)
{
    struct api_qos_sum sum = { 0 };
    json_t *container;
    size_t i;

    if (json_object_get(spec, "resources") != NULL) {
        qos_add(&sum, spec);
        return api_qos_of(&sum);
    }
    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        json_array_foreach (json_object_get(spec, lists[k]), i, container)
            qos_add(&sum, container);
    return api_qos_of(&sum);
}

/* ---- amounts ---- */

/* Whether two lists of amounts differ in resources that cannot be resized. */
static bool others_differ(const json_t *from, const json_t *to)
{
    const char *name;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)from, name, v)
        if (!resizable(name) && !same_amount(v, json_object_get(to, name)))
            return true;
    json_object_foreach ((json_t *)(uintptr_t)to, name, v)
        if (!resizable(name) && json_object_get(from, name) == NULL)
            return true;
    return false;
}

static bool removes(const json_t *from, const json_t *to)
{
    const char *name;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)from, name, v)
        if (resizable(name) && json_object_get(to, name) == NULL)
            return true;
    return false;
}

static bool check_container(json_t *causes, const char *list, size_t i, const json_t *from, const json_t *to)
{
    static const char *const what[] = { "limits", "requests" };

    for (size_t k = 0; k < ARRAY_LEN(what); k++) {
        str_auto field = str_printf("spec.%s[%zu].resources.%s", list, i, what[k]);

        if (removes(amounts(from, what[k]), amounts(to, what[k])) &&
            (field == NULL ||
             !add(causes, api_status_cause("FieldValueForbidden", field,
                                           "Forbidden: resource %s cannot be removed", what[k]))))
            return false;
    }
    return true;
}

bool api_resize_rules(const json_t *live, const json_t *object, json_t *causes)
{
    const json_t *from = json_object_get(live, "spec"), *to = json_object_get(object, "spec");
    const enum api_qos class = class_of(from);
    bool others = false;
    json_t *container;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        json_array_foreach (json_object_get(to, lists[k]), i, container) {
            const json_t *was = json_array_get(json_object_get(from, lists[k]), i);

            others = others || others_differ(amounts(was, "limits"), amounts(container, "limits")) ||
                     others_differ(amounts(was, "requests"), amounts(container, "requests"));
            if (!check_container(causes, lists[k], i, was, container))
                return false;
        }
    if (class != class_of(to) &&
        !add(causes, api_status_cause("FieldValueInvalid", "spec",
                                      "Invalid value: \"%s\": Pod QOS Class may not change as a result of "
                                      "resizing",
                                      api_qos_name(class))))
        return false;
    return !others || add(causes, api_status_cause("FieldValueForbidden", "spec",
                                                   "Forbidden: only cpu and memory resources are mutable"));
}

/* ---- ephemeral containers ---- */

/* A name of a new one that another container has. */
static bool check_names(const json_t *spec, const json_t *after, json_t *causes)
{
    json_t *one;
    size_t i;

    json_array_foreach ((json_t *)(uintptr_t)after, i, one) {
        const char *name = json_str(one, "name");
        str_auto field = str_printf("spec.ephemeralContainers[%zu].name", i);
        bool taken = json_named(after, name) != one;

        for (size_t k = 0; k < ARRAY_LEN(lists); k++)
            taken = taken || json_named(json_object_get(spec, lists[k]), name) != NULL;
        if (name != NULL && taken &&
            (field == NULL ||
             !add(causes, api_status_cause("FieldValueDuplicate", field, "Duplicate value: \"%s\"", name))))
            return false;
    }
    return true;
}

bool api_ephemeral_rules(const json_t *live, const json_t *object, json_t *causes)
{
    const json_t *spec = json_object_get(object, "spec"),
                 *before = json_object_get(json_object_get(live, "spec"), "ephemeralContainers"),
                 *after = json_object_get(spec, "ephemeralContainers"), *now;
    json_t *one;
    size_t i;

    json_array_foreach ((json_t *)(uintptr_t)before, i, one) {
        const char *name = json_str(one, "name");

        now = json_named(after, name);
        if (now == NULL && !add(causes, api_status_cause("FieldValueForbidden", "spec.ephemeralContainers",
                                                         "Forbidden: existing ephemeral containers \"%s\" "
                                                         "may not be removed\n",
                                                         name != NULL ? name : "")))
            return false;
        if (now != NULL && !json_equal(now, one) &&
            !add(causes, api_status_cause("FieldValueForbidden", "spec.ephemeralContainers",
                                          "Forbidden: existing ephemeral containers \"%s\" may not be "
                                          "changed\n",
                                          name != NULL ? name : "")))
            return false;
    }
    return check_names(spec, after, causes);
}
