/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for spec.volumes: names, sizes, references of the downward API, paths of projected volumes. */
#include "agent/api/manifest/internal.h"
#include "agent/api/storage.h"

#include <stdint.h>
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
    size_t source, item; /* item: NO_ITEM if the source has just one path */
    const char *kind;
};

#define NO_ITEM SIZE_MAX

/* The next element of a path, skipping empty ones and "."; false at its end. */
static bool validate_volume_next_element(const char **path, size_t *ret_n)
{
    for (;; *path += 1) {
        *path += strspn(*path, "/");
        *ret_n = strcspn(*path, "/");
        if (*ret_n != 1 || **path != '.')
            return *ret_n > 0;
    }
}

enum relation { BEFORE, SAME, ABOVE /* a folder containing the other one */, BELOW, AFTER };

/* Compares element by element: a folder's contents directly follow it. */
static enum relation relate(const char *a, const char *b)
{
    for (;;) {
        size_t n, k;
        bool more_a = validate_volume_next_element(&a, &n), more_b = validate_volume_next_element(&b, &k);
        int order;

        if (!more_a || !more_b)
            return more_a ? BELOW : more_b ? ABOVE : SAME;
        order = memcmp(a, b, n < k ? n : k);
        if (order != 0 || n != k)
            return order < 0 || (order == 0 && n < k) ? BEFORE : AFTER;
        a += n;
        b += k;
    }
}

static int validate_volume_path_order(const void *a, const void *b)
{
    const struct claimed_path *x = a, *y = b;
    enum relation r = relate(x->path, y->path);

    if (r != SAME)
        return r == BEFORE || r == ABOVE ? -1 : 1;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static void claim(struct claimed_path *v, size_t *n, const char *path, const char *kind, size_t source,
                  size_t item)
{
    if (path != NULL)
        v[(*n)++] = (struct claimed_path){ .path = path, .source = source, .item = item, .kind = kind };
}

static void name_claim(const struct claimed_path *p, char ret[80])
{
    if (p->item == NO_ITEM)
        snprintf(ret, 80, "sources[%zu].%s.path", p->source, p->kind);
    else
        snprintf(ret, 80, "sources[%zu].%s.items[%zu].path", p->source, p->kind, p->item);
}

/* Both are named; the problem is reported at the one later in the manifest. */
static void say_collision(struct api_check *c, const struct claimed_path *a, const struct claimed_path *b)
{
    bool a_first = a->source != b->source ? a->source < b->source : a->item < b->item;
    const struct claimed_path *first = a_first ? a : b, *second = a_first ? b : a;
    enum relation r = relate(second->path, first->path);
    char at[80], other[80];

    name_claim(second, at);
    name_claim(first, other);
    if (r == SAME)
        api_fault_at(c, at, "conflicting duplicate paths: %s is also that of %s", QUOTE(second->path), other);
    else
        api_fault_at(c, at, "%s cannot be a %s while %s is \"%.100s\"", QUOTE(second->path),
                     r == ABOVE ? "file" : "path", other, first->path);
}

/* Explicit paths must not collide; keys of whole objects may (the later source wins). */
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
        claim(v, &n, s->path, s->kind == API_SRC_TRUST ? "clusterTrustBundle" : "serviceAccountToken", i,
              NO_ITEM);
    }
    if (n > 1)
        qsort(v, n, sizeof(*v), validate_volume_path_order);
    for (size_t i = 1; i < n; i++) {
        enum relation r = relate(v[i - 1].path, v[i].path);
        if (r == SAME || r == ABOVE)
            say_collision(c, &v[i - 1], &v[i]);
    }
    free(v);
}

static void check_payload(struct api_check *c, const struct api_volume *volume)
{
    static const char *const kinds[] = { "configMap",          "secret",
                                         "downwardAPI",        "serviceAccountToken",
                                         "clusterTrustBundle", "podCertificate" };
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
        if (volume->sources[i].kind == API_SRC_TRUST)
            api_validate_trust(c, &volume->sources[i]);
        if (volume->sources[i].kind == API_SRC_CERTIFICATE && (c->joined || c->served))
            api_fault(c, "not supported: this node asks for no certificates of pods");
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

/* The API server accepts it, and so do we. */
static void check_host_path(struct api_check *c, const struct api_volume *volume)
{
    size_t mark = api_enter(c, "hostPath");

    api_enter(c, "path");
    if (volume->kind == API_VOL_HOST_PATH && volume->host_path != NULL && volume->host_path[0] != '/')
        api_ignore(c, "not an absolute path: the volume cannot be mounted");
    api_leave(c, mark);
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
        if (volume->kind == API_VOL_STORAGE && volume->storage != NULL)
            api_validate_storage(c, volume->storage, true);
        check_host_path(c, volume);
        check_payload(c, volume);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}
