/* SPDX-License-Identifier: Apache-2.0 */
/* build - the struct of an object, by kind: along its schema, with defaults and the rules across fields. */
#include "agent/api/manifest/internal.h"

#include <stdlib.h>
#include <string.h>

char *api_keep_json(struct api_check *c, const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS), *copy = NULL;

    if (text == NULL)
        c->no_memory = true;
    else
        copy = api_strdup(c, text);
    free(text);
    return copy;
}

void api_keep_ignored(struct api_check *c, struct api_strs *ret)
{
    ret->v = api_alloc(c, (c->n_ignored + 1) * sizeof(*ret->v));
    if (ret->v == NULL)
        return;
    if (c->n_ignored > 0)
        memcpy(ret->v, c->ignored, c->n_ignored * sizeof(*ret->v));
    ret->n = c->n_ignored;
}

static void keep_owner(struct api_check *c, struct api_pod *pod, const json_t *object)
{
    const json_t *owners = json_object_get(json_object_get(object, "metadata"), "ownerReferences");
    const char *uid = json_string_value(json_object_get(json_array_get(owners, 0), "uid"));

    if (uid != NULL)
        pod->owner_uid = api_strdup(c, uid);
}

void *api_begin(struct api_check *c, struct api_building *b, const struct api_layout *l)
{
    char *made = calloc(1, l->size);

    if (made == NULL) {
        c->no_memory = true;
        return NULL;
    }
    *(int *)(void *)(made + l->refs) = 1;
    *(enum api_origin *)(void *)(made + l->origin) = c->served ? API_FROM_SERVER : API_FROM_FOLDER;
    *b = (struct api_building){ .outer = c->arena, .faults = c->faults };
    c->arena = (struct arena *)(void *)(made + l->arena);
    return made;
}

bool api_is_good(const struct api_check *c, const struct api_building *b)
{
    return c->faults == b->faults && !c->no_memory;
}

bool api_end(struct api_check *c, const struct api_building *b)
{
    api_check_done(c);
    c->arena = b->outer;
    return api_is_good(c, b);
}

struct api_pod *api_build_pod(struct api_check *c, const struct api_schema *schema, json_t *object)
{
    struct api_building b;
    struct api_pod *pod = api_begin(c, &b, &API_LAYOUT(struct api_pod));

    if (pod == NULL)
        return NULL;
    api_defaults_before(c, object);
    if (c->static_node != NULL)
        api_make_static(c, object);
    if (c->served)
        api_take_served(c, object, pod);
    if (!c->no_memory)
        api_walk(c, schema, object, pod);
    if (!c->no_memory)
        api_defaults_after(c, object, pod);
    if (!c->no_memory)
        api_validate_pod(c, pod, object);
    if (!c->no_memory && c->lint != NULL)
        api_lint_pod(c, pod);
    if (api_is_good(c, &b)) {
        pod->qos = api_compute_qos(&pod->spec);
        pod->json = api_keep_json(c, object);
        if (c->expanded)
            keep_owner(c, pod, object);
        api_keep_ignored(c, &pod->ignored);
    }
    if (api_end(c, &b))
        return pod;
    api_pod_unref(pod);
    return NULL;
}

static struct api_config *build_config(struct api_check *c, enum api_config_kind kind, json_t *object)
{
    struct api_building b;
    struct api_config *config = api_begin(c, &b, &API_LAYOUT(struct api_config));

    if (config == NULL)
        return NULL;
    config->kind = kind;
    api_build_config(c, config, object);
    if (api_end(c, &b))
        return config;
    api_config_unref(config);
    return NULL;
}

/* Maximum value of a user's class; the two system classes. */
#define PRIORITY_USER_MAX 1000000000

static void check_priority_class(struct api_check *c, const struct api_priority_class *class)
{
    static const struct {
        const char *name;
        int32_t value;
    } system_classes[] = { { "system-cluster-critical", 2000000000 },
                           { "system-node-critical", 2000001000 } };
    const char *name = class->meta.name;

    api_validate_meta(c, &class->meta);
    if (name == NULL || !str_starts(name, "system-")) {
        if (class->value > PRIORITY_USER_MAX)
            api_fault_at(c, "value", "%d is out of range, allowed is at most %d", (int)class->value,
                         PRIORITY_USER_MAX);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(name, system_classes[i].name) != 0)
            continue;
        if (class->value != system_classes[i].value)
            api_fault_at(c, "value", "%s has the value %d", name, (int)system_classes[i].value);
        if (class->global_default)
            api_fault_at(c, "globalDefault", "%s cannot be the default", name);
        return;
    }
    api_fault_at(c, "metadata.name", "%s: names that begin with \"system-\" are reserved", QUOTE(name));
}

static struct api_priority_class *build_priority_class(struct api_check *c, json_t *object)
{
    struct api_building b;
    struct api_priority_class *class = api_begin(c, &b, &API_LAYOUT(struct api_priority_class));

    if (class == NULL)
        return NULL;
    api_walk(c, &api_schema_priority_class, object, class);
    if (!c->no_memory)
        check_priority_class(c, class);
    if (api_end(c, &b))
        return class;
    api_priority_class_unref(class);
    return NULL;
}

static struct api_runtime_class *build_runtime_class(struct api_check *c, json_t *object)
{
    struct api_building b;
    struct api_runtime_class *class = api_begin(c, &b, &API_LAYOUT(struct api_runtime_class));

    if (class == NULL)
        return NULL;
    api_walk(c, &api_schema_runtime_class, object, class);
    if (!c->no_memory) {
        size_t mark = api_enter(c, "overhead");

        api_validate_overhead(c, "podFixed", &class->overhead);
        api_leave(c, mark);
        api_validate_meta(c, &class->meta);
    }
    if (api_end(c, &b))
        return class;
    api_runtime_class_unref(class);
    return NULL;
}

bool api_build_object(struct api_check *c, enum api_kind kind, json_t *object, struct api_object *ret)
{
    ret->kind = kind;
    switch (kind) {
    case API_KIND_POD:
        ret->pod = api_build_pod(c, &api_schema_pod, object);
        break;
    case API_KIND_CONFIG_MAP:
        ret->config = build_config(c, API_CONFIG_MAP, object);
        break;
    case API_KIND_SECRET:
        ret->config = build_config(c, API_SECRET, object);
        break;
    case API_KIND_PRIORITY_CLASS:
        ret->priority_class = build_priority_class(c, object);
        break;
    case API_KIND_RUNTIME_CLASS:
        ret->runtime_class = build_runtime_class(c, object);
        break;
    default:
        ret->generic = api_build_generic(c, kind, object);
        break;
    }
    return ret->pod != NULL;
}
