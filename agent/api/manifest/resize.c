/* SPDX-License-Identifier: Apache-2.0 */
/* In-place resize: which cpu and memory changed, and a manifest with the old amounts. */
#include "agent/api/manifest/internal.h"

#include <string.h>

static const char *const lists[] = { "initContainers", "containers" };

static json_t *resources_of(const json_t *object)
{
    return json_object_get(object, "resources");
}

static bool api_resize_same(const json_t *a, const json_t *b)
{
    return a == b || (a != NULL && b != NULL && json_equal(a, b));
}

static bool parse_both(const struct api_pod *a, const struct api_pod *b, json_t **ret_a, json_t **ret_b)
{
    *ret_a = json_loads(a->json, 0, NULL);
    *ret_b = json_loads(b->json, 0, NULL);
    return *ret_a != NULL && *ret_b != NULL;
}

bool api_pod_resources_differ(const struct api_pod *old_pod, const struct api_pod *new_pod)
{
    json_auto_t *a = NULL, *b = NULL;
    const json_t *old_spec, *new_spec;
    bool differ;

    if (!parse_both(old_pod, new_pod, &a, &b))
        return true;
    old_spec = json_object_get(a, "spec");
    new_spec = json_object_get(b, "spec");
    differ = !api_resize_same(resources_of(old_spec), resources_of(new_spec));
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const json_t *x = json_object_get(old_spec, lists[i]), *y = json_object_get(new_spec, lists[i]);
        for (size_t k = 0; k < json_array_size(x); k++)
            differ = differ ||
                     !api_resize_same(resources_of(json_array_get(x, k)), resources_of(json_array_get(y, k)));
    }
    return differ;
}

static bool take_over(json_t *to, const json_t *from)
{
    json_t *r = resources_of(from);

    if (r != NULL)
        return json_object_set(to, "resources", r) == 0;
    json_object_del(to, "resources");
    return true;
}

enum err_code api_pod_with_resources_of(const struct api_pod *pod, const struct api_pod *other,
                                        struct api_pod **ret, struct err *e)
{
    json_auto_t *a = NULL, *b = NULL;
    json_t *to, *from;
    bool ok;

    if (!parse_both(pod, other, &a, &b))
        return err_nomem(e);
    to = json_object_get(a, "spec");
    from = json_object_get(b, "spec");
    ok = take_over(to, from);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        json_t *x = json_object_get(to, lists[i]), *y = json_object_get(from, lists[i]);
        for (size_t k = 0; k < json_array_size(x); k++)
            ok = take_over(json_array_get(x, k), json_array_get(y, k)) && ok;
    }
    return ok ? api_pod_remake(pod, a, ret, e) : err_nomem(e);
}
