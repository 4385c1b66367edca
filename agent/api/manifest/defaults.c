/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults that depend on other fields; the fixed ones are in the tables. */
#include "agent/api/manifest/internal.h"

#include <string.h>

/* ---- before the walk: on the JSON, touching only values of the expected type ---- */

/* Always if the tag is "latest", or if there is neither tag nor digest. The tag follows a colon in the last
 * path element before the digest; host:5000/name has none. */
enum api_pull_policy api_pull_policy_default(const char *image)
{
    static const char latest[] = ":latest";
    size_t n = strcspn(image, "@"), tag = n;
    bool digest = image[n] == '@';

    while (tag > 0 && image[tag - 1] != ':' && image[tag - 1] != '/')
        tag--;
    if (tag == 0 || image[tag - 1] == '/')
        return digest ? API_PULL_IF_NOT_PRESENT : API_PULL_ALWAYS;
    tag--;
    if (n - tag == sizeof(latest) - 1 && strncmp(image + tag, latest, n - tag) == 0)
        return API_PULL_ALWAYS;
    return API_PULL_IF_NOT_PRESENT;
}

static bool empty_text(const json_t *v)
{
    return v == NULL || json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0);
}

static void default_pull_policy(struct api_check *c, json_t *holder, const char *image_field,
                                const char *policy_field)
{
    const char *image = json_string_value(json_object_get(holder, image_field));
    bool always;

    if (image == NULL || *image == '\0' || !empty_text(json_object_get(holder, policy_field)))
        return;
    always = api_pull_policy_default(image) == API_PULL_ALWAYS;
    if (json_object_set_new(holder, policy_field, json_string(always ? "Always" : "IfNotPresent")) != 0)
        c->no_memory = true;
}

static void default_host_ports(struct api_check *c, json_t *container)
{
    json_t *port;
    size_t i;

    json_array_foreach (json_object_get(container, "ports"), i, port) {
        json_t *number = json_object_get(port, "containerPort"), *host = json_object_get(port, "hostPort");
        bool valid =
            json_is_integer(number) && json_integer_value(number) >= 1 && json_integer_value(number) <= 65535;
        bool unset =
            host == NULL || json_is_null(host) || (json_is_integer(host) && json_integer_value(host) == 0);
        if (valid && unset && json_object_set(port, "hostPort", number) != 0)
            c->no_memory = true;
    }
}

static void default_volume(struct api_check *c, json_t *volume)
{
    const char *name;
    json_t *value;

    default_pull_policy(c, json_object_get(volume, "image"), "reference", "pullPolicy");
    if (!json_is_object(volume))
        return;
    json_object_foreach (volume, name, value) {
        if (strcmp(name, "name") != 0 && !json_is_null(value))
            return;
    }
    if (json_object_set_new(volume, "emptyDir", json_object()) != 0)
        c->no_memory = true;
}

/* The volume with a service account's token that the apiserver adds to each pod. A pod that was copied from a
 * cluster has it; here, where nothing makes tokens, its folder is empty. */
static void drop_account_volume(struct api_check *c, json_t *volume, size_t index)
{
    const char *name = json_string_value(json_object_get(volume, "name"));
    size_t mark;

    if (c->joined || c->served || name == NULL || !str_starts(name, "kube-api-access-") ||
        !json_is_object(json_object_get(volume, "projected")))
        return;
    mark = api_enter(c, "spec");
    api_enter(c, "volumes");
    api_enter_index(c, index);
    api_ignore(c, "without an API server there is no token: the volume is empty");
    api_leave(c, mark);
    json_object_del(volume, "projected");
}

void api_defaults_before(struct api_check *c, json_t *pod)
{
    static const char *const lists[] = { "containers", "initContainers", "ephemeralContainers" };
    json_t *spec = json_object_get(pod, "spec"), *element;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        json_array_foreach (json_object_get(spec, lists[k]), i, element) {
            default_pull_policy(c, element, "image", "imagePullPolicy");
            if (json_is_true(json_object_get(spec, "hostNetwork")))
                default_host_ports(c, element);
        }
    }
    json_array_foreach (json_object_get(spec, "volumes"), i, element) {
        drop_account_volume(c, element, i);
        default_volume(c, element);
    }
    if (json_is_object(spec) && empty_text(json_object_get(spec, "serviceAccountName")) &&
        json_is_string(json_object_get(spec, "serviceAccount")) &&
        json_object_set(spec, "serviceAccountName", json_object_get(spec, "serviceAccount")) != 0)
        c->no_memory = true;
}

/* ---- after the walk: resources, in the structs and in the JSON ---- */
static void add_request(struct api_check *c, struct api_resource_list *list, json_t *resources,
                        const char *name, const struct quantity *amount)
{
    struct api_resource *grown = api_alloc(c, (list->n + 1) * sizeof(*grown));
    json_t *requests = json_object_get(resources, "requests");
    char text[QUANTITY_TEXT_SIZE];
    size_t at = 0;

    if (requests == NULL && json_object_set_new(resources, "requests", json_object()) == 0)
        requests = json_object_get(resources, "requests");
    quantity_format(amount, text);
    if (grown == NULL || json_object_set_new(requests, name, json_string(text)) != 0) {
        c->no_memory = true;
        return;
    }
    while (at < list->n && strcmp(list->v[at].name, name) < 0)
        at++;
    if (at > 0)
        memcpy(grown, list->v, at * sizeof(*grown));
    grown[at] = (struct api_resource){ .name = api_strdup(c, name), .amount = *amount };
    if (at < list->n)
        memcpy(grown + at + 1, list->v + at, (list->n - at) * sizeof(*grown));
    list->v = grown;
    list->n += grown[at].name != NULL;
}

/* An object whose requests, if given, are an object, too: other problems are already reported. */
static bool can_take_requests(const json_t *resources)
{
    const json_t *requests = json_object_get(resources, "requests");

    return json_is_object(resources) && (requests == NULL || json_is_object(requests));
}

static void requests_from_limits(struct api_check *c, struct api_resources *r, json_t *resources,
                                 bool pod_level)
{
    if (!can_take_requests(resources))
        return;
    for (size_t i = 0; i < r->limits.n; i++) {
        const struct api_resource *limit = &r->limits.v[i];
        bool counted = !pod_level || strcmp(limit->name, "cpu") == 0 || strcmp(limit->name, "memory") == 0 ||
                       str_starts(limit->name, "hugepages-");
        if (counted && api_resource_get(&r->requests, limit->name) == NULL)
            add_request(c, &r->requests, resources, limit->name, &limit->amount);
    }
}

static void default_containers(struct api_check *c, json_t *list, struct api_container *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        requests_from_limits(c, &v[i].resources, json_object_get(json_array_get(list, i), "resources"),
                             false);
}

/* Pod-level requests: the sum of the containers' requests, otherwise the pod-level limit; only if there are
 * pod-level limits. */
static void default_pod_level(struct api_check *c, struct api_pod_spec *spec, json_t *resources)
{
    static const char *const names[] = { "cpu", "memory" };
    struct quantity sum;

    if (!spec->has_resources || spec->resources.limits.n == 0 || !can_take_requests(resources))
        return;
    for (size_t i = 0; i < 2; i++) {
        if (api_resource_get(&spec->resources.requests, names[i]) == NULL &&
            api_sum_requests(spec, names[i], &sum))
            add_request(c, &spec->resources.requests, resources, names[i], &sum);
    }
    requests_from_limits(c, &spec->resources, resources, true);
}

/* ---- after the walk: AppArmor profiles from annotations, in the structs ---- */
static void default_apparmor(struct api_check *c, struct api_container *v, size_t n, const char *name,
                             const char *value)
{
    static const char local[] = "localhost/";

    for (size_t i = 0; i < n; i++) {
        struct api_apparmor *a = &v[i].security.apparmor;
        if (!str_eq(v[i].name, name) || a->type != NULL)
            continue;
        if (strcmp(value, "runtime/default") == 0) {
            a->type = api_strdup(c, "RuntimeDefault");
        } else if (strcmp(value, "unconfined") == 0) {
            a->type = api_strdup(c, "Unconfined");
        } else if (str_starts(value, local)) {
            a->type = api_strdup(c, "Localhost");
            a->localhost_profile = api_strdup(c, value + sizeof(local) - 1);
        }
    }
}

static void default_apparmor_of_all(struct api_check *c, struct api_pod *pod)
{
    const struct api_kvs *m = &pod->meta.annotations;
    struct api_pod_spec *spec = &pod->spec;

    for (size_t i = 0; i < m->n; i++) {
        const char *name = m->v[i].key + sizeof(API_APPARMOR_OF) - 1;
        if (!str_starts(m->v[i].key, API_APPARMOR_OF))
            continue;
        default_apparmor(c, spec->containers, spec->n_containers, name, m->v[i].value);
        default_apparmor(c, spec->init_containers, spec->n_init_containers, name, m->v[i].value);
        default_apparmor(c, spec->ephemeral_containers, spec->n_ephemeral_containers, name, m->v[i].value);
    }
}

void api_defaults_after(struct api_check *c, json_t *object, struct api_pod *pod)
{
    struct api_pod_spec *spec = &pod->spec;
    json_t *json = json_object_get(object, "spec");

    default_containers(c, json_object_get(json, "containers"), spec->containers, spec->n_containers);
    default_containers(c, json_object_get(json, "initContainers"), spec->init_containers,
                       spec->n_init_containers);
    default_pod_level(c, spec, json_object_get(json, "resources"));
    default_apparmor_of_all(c, pod);
}
