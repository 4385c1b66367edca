/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of an edited manifest on a running pod: the API's rule for changes in place. */
#include "agent/api/manifest/internal.h"

#include <stdio.h>
#include <string.h>

struct edit {
    char *why;
    size_t size, n;
    bool restart;
};

static void need(struct edit *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void need(struct edit *e, const char *fmt, ...)
{
    char text[300];
    int wrote;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    e->restart = true;
    if (e->n >= e->size)
        return;
    wrote = snprintf(e->why + e->n, e->size - e->n, "%s%s", e->n == 0 ? "" : ", ", text);
    if ((size_t)wrote >= e->size - e->n) {
        if (e->size > 3)
            memcpy(e->why + e->size - 4, "...", 4);
        e->n = e->size;
    } else {
        e->n += (size_t)wrote;
    }
}

static bool edit_same(const json_t *a, const json_t *b)
{
    return a == b || (a != NULL && b != NULL && json_equal((json_t *)a, (json_t *)b));
}

/* Calls fn for every member in which two objects (either may be NULL) differ. */
static void each_difference(struct edit *e, const json_t *a, const json_t *b,
                            void (*fn)(struct edit *e, const char *name, const json_t *a, const json_t *b,
                                       void *arg),
                            void *arg)
{
    const char *name;
    json_t *v;

    if (a != NULL) {
        json_object_foreach ((json_t *)a, name, v) {
            if (!edit_same(v, json_object_get(b, name)))
                fn(e, name, v, json_object_get(b, name), arg);
        }
    }
    if (b != NULL) {
        json_object_foreach ((json_t *)b, name, v) {
            if (json_object_get(a, name) == NULL)
                fn(e, name, NULL, v, arg);
        }
    }
}

/* ---- containers ---- */
struct container_pair {
    const char *list;
    size_t index;
    const json_t *old_container, *new_container;
};

static void resource_difference(struct edit *e, const char *name, const json_t *a, const json_t *b, void *arg)
{
    bool *in_place = arg;

    (void)e;
    (void)a;
    (void)b;
    if (strcmp(name, "cpu") != 0 && strcmp(name, "memory") != 0)
        *in_place = false;
}

/* cpu and memory are resized in place. */
static bool resized_in_place(struct edit *e, const json_t *a, const json_t *b)
{
    static const char *const lists[] = { "limits", "requests" };
    bool in_place = true;

    for (size_t i = 0; i < 2; i++)
        each_difference(e, json_object_get(a, lists[i]), json_object_get(b, lists[i]), resource_difference,
                        &in_place);
    return in_place;
}

static bool default_policy(const json_t *container)
{
    const char *image = json_string_value(json_object_get(container, "image"));
    const char *policy = json_string_value(json_object_get(container, "imagePullPolicy"));
    bool always = image != NULL && api_pull_policy_default(image) == API_PULL_ALWAYS;

    return str_eq(policy, always ? "Always" : "IfNotPresent");
}

static void container_difference(struct edit *e, const char *name, const json_t *a, const json_t *b,
                                 void *arg)
{
    const struct container_pair *pair = arg;

    if (strcmp(name, "image") == 0)
        return;
    if (strcmp(name, "resources") == 0 && resized_in_place(e, a, b))
        return;
    /* A new tag may change the default. */
    if (strcmp(name, "imagePullPolicy") == 0 && default_policy(pair->old_container) &&
        default_policy(pair->new_container))
        return;
    need(e, "spec.%s[%zu].%.100s", pair->list, pair->index, name);
}

static void compare_containers(struct edit *e, const char *list, const json_t *a, const json_t *b)
{
    if (json_array_size(a) != json_array_size(b)) {
        need(e, "spec.%s", list);
        return;
    }
    for (size_t i = 0; i < json_array_size(a); i++) {
        struct container_pair pair = { list, i, json_array_get(a, i), json_array_get(b, i) };
        each_difference(e, pair.old_container, pair.new_container, container_difference, &pair);
    }
}

/* ---- the rest of the spec ---- */
static bool deadline_in_place(const json_t *a, const json_t *b)
{
    return b != NULL && (a == NULL || json_integer_value(b) <= json_integer_value(a));
}

static bool same_toleration(const json_t *a, const json_t *b)
{
    static const char *const fields[] = { "key", "operator", "value", "effect" };

    for (size_t i = 0; i < 4; i++) {
        if (!edit_same(json_object_get(a, fields[i]), json_object_get(b, fields[i])))
            return false;
    }
    return true;
}

/* Tolerations may be added, and their tolerationSeconds may change. */
static bool tolerations_in_place(const json_t *a, const json_t *b)
{
    json_t *old_one, *new_one;
    size_t i, k;

    json_array_foreach (a, i, old_one) {
        bool found = false;
        json_array_foreach (b, k, new_one)
            found = found || same_toleration(old_one, new_one);
        if (!found)
            return false;
    }
    return true;
}

static void spec_difference(struct edit *e, const char *name, const json_t *a, const json_t *b, void *arg)
{
    (void)arg;
    if (strcmp(name, "containers") == 0 || strcmp(name, "initContainers") == 0) {
        compare_containers(e, name, a, b);
        return;
    }
    if (strcmp(name, "activeDeadlineSeconds") == 0 && deadline_in_place(a, b))
        return;
    if (strcmp(name, "tolerations") == 0 && tolerations_in_place(a, b))
        return;
    if (strcmp(name, "terminationGracePeriodSeconds") == 0 && json_integer_value(a) < 0 &&
        json_integer_value(b) == 1)
        return;
    if (strcmp(name, "resources") == 0 && resized_in_place(e, a, b))
        return;
    need(e, "spec.%.100s", name);
}

/* Whether set by field or by annotation. */
static bool same_profiles(const struct api_container *a, const struct api_container *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!str_eq(a[i].security.apparmor.type, b[i].security.apparmor.type) ||
            !str_eq(a[i].security.apparmor.localhost_profile, b[i].security.apparmor.localhost_profile))
            return false;
    return true;
}

static void compare_profiles(struct edit *e, const struct api_pod_spec *a, const struct api_pod_spec *b)
{
    if (a->n_containers == b->n_containers && a->n_init_containers == b->n_init_containers &&
        !(same_profiles(a->containers, b->containers, a->n_containers) &&
          same_profiles(a->init_containers, b->init_containers, a->n_init_containers)))
        need(e, "metadata.annotations: a container's AppArmor profile");
}

bool api_pod_edit_needs_restart(const struct api_pod *old_pod, const struct api_pod *new_pod, char *why,
                                size_t why_size)
{
    struct edit e = { .why = why, .size = why_size };
    json_t *a = json_loads(old_pod->json, 0, NULL), *b = json_loads(new_pod->json, 0, NULL);

    if (why_size > 0)
        why[0] = '\0';
    if (a == NULL || b == NULL) {
        need(&e, "spec"); /* out of memory */
    } else {
        if (!str_eq(old_pod->meta.name, new_pod->meta.name))
            need(&e, "metadata.name");
        if (!str_eq(old_pod->meta.namespace, new_pod->meta.namespace))
            need(&e, "metadata.namespace");
        if (new_pod->meta.uid != NULL && !str_eq(old_pod->meta.uid, new_pod->meta.uid))
            need(&e, "metadata.uid");
        each_difference(&e, json_object_get(a, "spec"), json_object_get(b, "spec"), spec_difference, NULL);
        compare_profiles(&e, &old_pod->spec, &new_pod->spec);
        if (old_pod->qos != new_pod->qos)
            need(&e, "resources that change the QoS class from %s to %s", api_qos_name(old_pod->qos),
                 api_qos_name(new_pod->qos));
    }
    json_decref(a);
    json_decref(b);
    return e.restart;
}
