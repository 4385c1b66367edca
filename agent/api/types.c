/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/types.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

const char *api_kvs_get(const struct api_kvs *m, const char *key)
{
    size_t low = 0, high = m->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(m->v[mid].key, key);
        if (order == 0)
            return m->v[mid].value;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static int kv_order(const void *a, const void *b)
{
    const struct api_kv *x = a, *y = b;

    return strcmp(x->key, y->key);
}

void api_kvs_sort(struct api_kvs *m)
{
    if (m->n > 1)
        qsort(m->v, m->n, sizeof(*m->v), kv_order);
}

const struct quantity *api_resource_get(const struct api_resource_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->v[i].name, name) == 0)
            return &l->v[i].amount;
    }
    return NULL;
}

const char *api_qos_name(enum api_qos qos)
{
    switch (qos) {
    case API_QOS_GUARANTEED:
        return "Guaranteed";
    case API_QOS_BURSTABLE:
        return "Burstable";
    case API_QOS_BEST_EFFORT:
        return "BestEffort";
    }
    return "Unknown";
}

struct api_pod *api_pod_ref(struct api_pod *p)
{
    p->refs++;
    return p;
}

void api_pod_unref(struct api_pod *p)
{
    if (p == NULL || --p->refs > 0)
        return;
    arena_done(&p->arena);
    free(p);
}

const struct api_datum *api_config_get(const struct api_config *c, const char *key)
{
    size_t low = 0, high = c->n_data;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(c->data[mid].key, key);
        if (order == 0)
            return &c->data[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

struct api_config *api_config_ref(struct api_config *c)
{
    c->refs++;
    return c;
}

/* kubectl apply keeps the whole Secret in an annotation, so annotations are as secret as the data. */
static void wipe_config(struct api_config *c)
{
    for (size_t i = 0; i < c->n_data; i++) {
        if (c->data[i].data != NULL)
            explicit_bzero(c->data[i].data, c->data[i].size);
    }
    for (size_t i = 0; i < c->meta.annotations.n; i++) {
        char *value = c->meta.annotations.v[i].value;
        if (value != NULL)
            explicit_bzero(value, strlen(value));
    }
}

void api_config_unref(struct api_config *c)
{
    if (c == NULL || --c->refs > 0)
        return;
    if (c->kind == API_SECRET)
        wipe_config(c);
    arena_done(&c->arena);
    free(c);
}

struct api_priority_class *api_priority_class_ref(struct api_priority_class *c)
{
    c->refs++;
    return c;
}

void api_priority_class_unref(struct api_priority_class *c)
{
    if (c == NULL || --c->refs > 0)
        return;
    arena_done(&c->arena);
    free(c);
}

const struct api_container *api_container_at(const struct api_pod_spec *spec, size_t index)
{
    if (index < spec->n_init_containers)
        return &spec->init_containers[index];
    index -= spec->n_init_containers;
    return index < spec->n_containers ? &spec->containers[index] : NULL;
}

const struct api_container *api_ephemeral_find(const struct api_pod_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        if (str_eq(spec->ephemeral_containers[i].name, name))
            return &spec->ephemeral_containers[i];
    return NULL;
}

struct api_runtime_class *api_runtime_class_ref(struct api_runtime_class *c)
{
    c->refs++;
    return c;
}

void api_runtime_class_unref(struct api_runtime_class *c)
{
    if (c == NULL || --c->refs > 0)
        return;
    arena_done(&c->arena);
    free(c);
}

const struct api_volume *api_volume_find(const struct api_pod_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (str_eq(spec->volumes[i].name, name))
            return &spec->volumes[i];
    return NULL;
}

bool api_mount_has_sub_path(const struct api_volume_mount *m)
{
    return (m->sub_path != NULL && m->sub_path[0] != '\0') || m->sub_path_expr != NULL;
}
