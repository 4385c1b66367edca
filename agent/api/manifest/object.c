/* SPDX-License-Identifier: Apache-2.0 */
/* object - an object of any kind: its metadata, its references. */
#include "agent/api/manifest/internal.h"

#include <stdlib.h>

const struct api_meta *api_object_meta(const struct api_object *o)
{
    if (api_kind_is_generic(o->kind))
        return &o->generic->meta;
    switch (o->kind) {
    case API_KIND_POD:
        return &o->pod->meta;
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        return &o->config->meta;
    case API_KIND_PRIORITY_CLASS:
        return &o->priority_class->meta;
    case API_KIND_RUNTIME_CLASS:
        return &o->runtime_class->meta;
    default:
        break;
    }
    return NULL;
}

enum api_origin api_object_origin(const struct api_object *o)
{
    if (api_kind_is_generic(o->kind))
        return o->generic->origin;
    switch (o->kind) {
    case API_KIND_POD:
        return o->pod->origin;
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        return o->config->origin;
    case API_KIND_PRIORITY_CLASS:
        return o->priority_class->origin;
    case API_KIND_RUNTIME_CLASS:
        return o->runtime_class->origin;
    default:
        break;
    }
    return API_FROM_FOLDER;
}

struct api_object api_object_ref(const struct api_object *o)
{
    struct api_object mine = *o;

    switch (o->kind) {
    case API_KIND_POD:
        mine.pod = api_pod_ref(o->pod);
        break;
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        mine.config = api_config_ref(o->config);
        break;
    case API_KIND_PRIORITY_CLASS:
        mine.priority_class = api_priority_class_ref(o->priority_class);
        break;
    case API_KIND_RUNTIME_CLASS:
        mine.runtime_class = api_runtime_class_ref(o->runtime_class);
        break;
    default:
        mine.generic = api_generic_ref(o->generic);
        break;
    }
    return mine;
}

void api_object_unref(struct api_object *o)
{
    switch (o->kind) {
    case API_KIND_POD:
        api_pod_unref(o->pod);
        break;
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        api_config_unref(o->config);
        break;
    case API_KIND_PRIORITY_CLASS:
        api_priority_class_unref(o->priority_class);
        break;
    case API_KIND_RUNTIME_CLASS:
        api_runtime_class_unref(o->runtime_class);
        break;
    default:
        api_generic_unref(o->generic);
        break;
    }
}

void api_objects_done(struct api_objects *o)
{
    for (size_t i = 0; i < o->n; i++)
        api_object_unref(&o->v[i]);
    free(o->v);
    *o = (struct api_objects){ 0 };
}

struct arena *api_object_arena(const struct api_object *o)
{
    if (api_kind_is_generic(o->kind))
        return &o->generic->arena;
    switch (o->kind) {
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        return &o->config->arena;
    case API_KIND_PRIORITY_CLASS:
        return &o->priority_class->arena;
    case API_KIND_RUNTIME_CLASS:
        return &o->runtime_class->arena;
    default:
        return &o->pod->arena;
    }
}
