/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables and the references of the downward API. */
#include "agent/api/manifest/internal.h"

#include <ctype.h>
#include <string.h>

/* metadata.labels['k'], metadata.annotations['k'] */
static bool check_subscript(struct api_check *c, const char *path)
{
    const char *open = strstr(path, "['"), *rule;
    size_t n = strlen(path), key_n;
    bool annotations;
    char key[400];

    if (open == NULL || open == path || n < 4 || strcmp(path + n - 2, "']") != 0 || open + 2 > path + n - 2)
        return false;
    annotations =
        (size_t)(open - path) == strlen("metadata.annotations") && str_starts(path, "metadata.annotations");
    if (!annotations &&
        !((size_t)(open - path) == strlen("metadata.labels") && str_starts(path, "metadata.labels"))) {
        api_fault_at(c, "fieldPath",
                     "%s cannot have a subscript, only metadata.labels and metadata.annotations can",
                     QUOTE(path));
        return true;
    }
    key_n = (size_t)(path + n - 2 - (open + 2));
    if (key_n >= sizeof(key))
        key_n = sizeof(key) - 1;
    memcpy(key, open + 2, key_n);
    key[key_n] = '\0';
    for (size_t i = 0; annotations && key[i] != '\0'; i++)
        key[i] = (char)tolower((unsigned char)key[i]);
    rule = api_format_rule(API_FMT_LABEL_KEY, key);
    if (rule != NULL)
        api_fault_at(c, "fieldPath", "the key %s %s", QUOTE(key), rule);
    return true;
}

void api_validate_field_ref(struct api_check *c, const struct api_field_ref *ref, bool volume)
{
    static const char *const env_paths[] = {
        "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
        "status.hostIP", "status.hostIPs",     "status.podIP", "status.podIPs", NULL
    };
    static const char *const volume_paths[] = { "metadata.name",   "metadata.namespace",   "metadata.uid",
                                                "metadata.labels", "metadata.annotations", NULL };
    const char *const *paths = volume ? volume_paths : env_paths;

    if (ref->api_version != NULL && strcmp(ref->api_version, "v1") != 0)
        api_fault_at(c, "apiVersion", "%s is not supported, allowed is v1", QUOTE(ref->api_version));
    if (ref->field_path == NULL || check_subscript(c, ref->field_path))
        return;
    for (; *paths != NULL; paths++) {
        if (strcmp(*paths, ref->field_path) == 0)
            return;
    }
    if (volume)
        api_fault_at(c, "fieldPath",
                     "%s is not supported, allowed are metadata.name, metadata.namespace, metadata.uid, "
                     "metadata.labels "
                     "and metadata.annotations (these two also with ['key'])",
                     QUOTE(ref->field_path));
    else
        api_fault_at(
            c, "fieldPath",
            "%s is not supported, allowed are metadata.name, metadata.namespace, metadata.uid, "
            "metadata.labels['key'], metadata.annotations['key'], spec.nodeName, spec.serviceAccountName, "
            "status.hostIP, status.hostIPs, status.podIP and status.podIPs",
            QUOTE(ref->field_path));
}

static bool known_resource(const char *resource)
{
    static const char *const names[] = { "cpu", "memory", "ephemeral-storage" };
    const char *name;

    if (str_starts(resource, "limits."))
        name = resource + strlen("limits.");
    else if (str_starts(resource, "requests."))
        name = resource + strlen("requests.");
    else
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return str_starts(name, "hugepages-");
}

static void check_divisor(struct api_check *c, const struct api_resource_field_ref *ref)
{
    static const char *const cpu[] = { "1m", "1", NULL };
    static const char *const other[] = { "1",   "1k",  "1M",  "1G",  "1T",  "1P",  "1E",
                                         "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", NULL };
    bool is_cpu = strstr(ref->resource, ".cpu") != NULL;
    char text[QUANTITY_TEXT_SIZE];

    if (ref->divisor.nano == 0)
        return;
    quantity_format(&ref->divisor, text);
    for (const char *const *p = is_cpu ? cpu : other; *p != NULL; p++) {
        if (strcmp(*p, text) == 0)
            return;
    }
    api_fault_at(c, "divisor", "%s is not supported for %s, allowed are %s", text, ref->resource,
                 is_cpu ? "1m and 1" : "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi and 1Ei");
}

void api_validate_resource_field_ref(struct api_check *c, const struct api_resource_field_ref *ref,
                                     bool volume)
{
    if (volume && ref->container_name == NULL)
        api_fault_at(c, "containerName", "required in a volume");
    if (ref->resource == NULL)
        return;
    if (known_resource(ref->resource))
        check_divisor(c, ref);
    else
        api_fault_at(
            c, "resource",
            "%s is not supported, allowed are limits. and requests. with cpu, memory, ephemeral-storage or "
            "hugepages-<size>",
            QUOTE(ref->resource));
}

static void check_file_key_ref(struct api_check *c, const struct api_pod_spec *spec,
                               const struct api_file_key_ref *ref)
{
    const struct api_volume *volume;

    if (ref->volume_name == NULL)
        return;
    volume = api_volume_find(spec, ref->volume_name);
    if (volume == NULL)
        api_fault_at(c, "volumeName", "%s is not a volume of this pod", QUOTE(ref->volume_name));
    else if (volume->kind != API_VOL_EMPTY_DIR)
        api_fault_at(c, "volumeName", "%s is not an emptyDir", QUOTE(ref->volume_name));
}

void api_validate_env(struct api_check *c, const struct api_pod_spec *spec,
                      const struct api_container *container)
{
    size_t outer = api_enter(c, "env");

    for (size_t i = 0; i < container->n_env; i++) {
        const struct api_env *env = &container->env[i];
        bool has_source = env->field_ref != NULL || env->resource_field_ref != NULL ||
                          env->config_map_key_ref != NULL || env->secret_key_ref != NULL ||
                          env->file_key_ref != NULL;
        size_t mark = api_enter_index(c, i), middle = api_enter(c, "valueFrom"), inner;
        if (has_source && env->value != NULL && env->value[0] != '\0')
            api_fault(c, "not allowed when value is not empty");
        inner = api_enter(c, "fieldRef");
        if (env->field_ref != NULL)
            api_validate_field_ref(c, env->field_ref, false);
        api_leave(c, inner);
        inner = api_enter(c, "resourceFieldRef");
        if (env->resource_field_ref != NULL)
            api_validate_resource_field_ref(c, env->resource_field_ref, false);
        api_leave(c, inner);
        inner = api_enter(c, "fileKeyRef");
        if (env->file_key_ref != NULL)
            check_file_key_ref(c, spec, env->file_key_ref);
        api_leave(c, inner);
        api_leave(c, middle);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}
