/* Rules of spec.volumes: names, sizes, references of the downward API, paths of projected volumes. */
#include "agent/api/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_downward(struct api_check *c, const struct api_payload_source *source)
{
    size_t outer = api_enter(c, "items");

    for (size_t i = 0; i < source->n_downward; i++) {
        const struct api_downward_item *item = &source->downward[i];
        size_t mark = api_enter_index(c, i), inner;
        inner = api_enter(c, "fieldRef");
        if (item->field_ref != NULL)
            api_validate_field_ref(c, item->field_ref, true);
        api_leave(c, inner);
        inner = api_enter(c, "resourceFieldRef");
        if (item->resource_field_ref != NULL)
            api_validate_resource_field_ref(c, item->resource_field_ref, true);
        api_leave(c, inner);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

struct claimed_path {
    const char *path;
    size_t source, item;
    const char *kind;
};

static int path_order(const void *a, const void *b)
{
    const struct claimed_path *x = a, *y = b;
    int order = strcmp(x->path, y->path);

    if (order == 0)
        order = x->source != y->source ? (x->source < y->source ? -1 : 1)
                                       : (x->item > y->item) - (x->item < y->item);
    return order;
}

static void claim(struct claimed_path *v, size_t *n, const char *path, const char *kind, size_t source,
                  size_t item)
{
    if (path != NULL)
        v[(*n)++] = (struct claimed_path){ .path = path, .source = source, .item = item, .kind = kind };
}

/* Paths that are written out must not collide; keys of whole objects still may (the later source wins). */
static void check_projected_paths(struct api_check *c, const struct api_volume *volume)
{
    struct claimed_path *v;
    size_t n = 0, most = 0;

    for (size_t i = 0; i < volume->n_sources; i++)
        most += volume->sources[i].n_items + volume->sources[i].n_downward + 1;
    v = calloc(most + 1, sizeof(*v));
    if (v == NULL) {
        c->no_memory = true;
        return;
    }
    for (size_t i = 0; i < volume->n_sources; i++) {
        const struct api_payload_source *s = &volume->sources[i];
        const char *kind = s->kind == API_SRC_SECRET ? "secret" : "configMap";
        for (size_t k = 0; k < s->n_items; k++)
            claim(v, &n, s->items[k].path, kind, i, k);
        for (size_t k = 0; k < s->n_downward; k++)
            claim(v, &n, s->downward[k].path, "downwardAPI", i, k);
    }
    if (n > 1)
        qsort(v, n, sizeof(*v), path_order);
    for (size_t i = 1; i < n; i++) {
        char child[80];
        if (strcmp(v[i - 1].path, v[i].path) != 0)
            continue;
        snprintf(child, sizeof(child), "sources[%zu].%s.items[%zu].path", v[i].source, v[i].kind, v[i].item);
        api_fault_at(c, child, "%s is written by another item of this volume, too", QUOTE(v[i].path));
    }
    free(v);
}

static void check_payload(struct api_check *c, const struct api_volume *volume)
{
    static const char *const kinds[] = { "configMap", "secret", "downwardAPI", "serviceAccountToken" };
    size_t outer = c->path_n, mark;

    if (volume->projected)
        api_enter(c, "projected");
    for (size_t i = 0; i < volume->n_sources; i++) {
        mark = c->path_n;
        if (volume->projected) {
            api_enter(c, "sources");
            api_enter_index(c, i);
        }
        api_enter(c, kinds[volume->sources[i].kind]);
        check_downward(c, &volume->sources[i]);
        api_leave(c, mark);
    }
    if (volume->projected)
        check_projected_paths(c, volume);
    api_leave(c, outer);
}

static bool named_before(const struct api_pod_spec *spec, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (spec->volumes[i].name != NULL && str_eq(spec->volumes[i].name, spec->volumes[index].name))
            return true;
    }
    return false;
}

void api_validate_volumes(struct api_check *c, const struct api_pod_spec *spec)
{
    size_t outer = api_enter(c, "volumes");

    for (size_t i = 0; i < spec->n_volumes; i++) {
        const struct api_volume *volume = &spec->volumes[i];
        size_t mark = api_enter_index(c, i);
        if (named_before(spec, i))
            api_fault_at(c, "name", "%s is given twice", QUOTE(volume->name));
        if (volume->has_size_limit && volume->size_limit.nano < 0)
            api_fault_at(c, "emptyDir.sizeLimit", "must not be negative");
        check_payload(c, volume);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}
