/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for containers of all kinds: names, ports, mounts, restart rules; calls env, probe,
 * security. */
#include "agent/api/manifest/internal.h"

#include <stdlib.h>
#include <string.h>

#define RESTART_RULES_MAX 20
#define EXIT_CODES_MAX 255

/* ---- names and ports ---- */
static bool has_name(const struct api_container *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i].name != NULL && str_eq(v[i].name, name))
            return true;
    }
    return false;
}

static void validate_container_check_name(struct api_check *c, const struct api_pod_spec *spec,
                                          const struct api_container *container, size_t index, bool init)
{
    const struct api_container *own = init ? spec->init_containers : spec->containers;
    bool taken;

    if (container->name == NULL)
        return;
    taken = has_name(own, index, container->name) ||
            (init && has_name(spec->containers, spec->n_containers, container->name));
    if (taken)
        api_fault_at(c, "name", "%s is the name of another container of this pod, too",
                     QUOTE(container->name));
}

struct host_port {
    const struct api_port *port;
    size_t container, index;
};

static int text_order(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "");
}

/* By number, protocol and address; then as written. */
static int host_port_order(const void *a, const void *b)
{
    const struct host_port *x = a, *y = b;
    int order = (x->port->host_port > y->port->host_port) - (x->port->host_port < y->port->host_port);

    if (order == 0)
        order = text_order(x->port->protocol, y->port->protocol);
    if (order == 0)
        order = text_order(x->port->host_ip, y->port->host_ip);
    if (order == 0)
        order = (x->container > y->container) - (x->container < y->container);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static bool same_host_port(const struct api_port *a, const struct api_port *b)
{
    return a->host_port == b->host_port && text_order(a->protocol, b->protocol) == 0 &&
           text_order(a->host_ip, b->host_ip) == 0;
}

/* No two ports of containers [first, first + n) may use the same host port. The path ends at the list. */
static void check_host_ports(struct api_check *c, const struct api_container *v, size_t first, size_t n)
{
    struct host_port *taken;
    size_t most = 0, count = 0;

    for (size_t i = first; i < first + n; i++)
        most += v[i].n_ports;
    taken = calloc(most + 1, sizeof(*taken));
    if (taken == NULL) {
        c->no_memory = true;
        return;
    }
    for (size_t i = first; i < first + n; i++) {
        for (size_t k = 0; k < v[i].n_ports; k++) {
            if (v[i].ports[k].host_port != 0)
                taken[count++] = (struct host_port){ &v[i].ports[k], i, k };
        }
    }
    qsort(taken, count, sizeof(*taken), host_port_order);
    for (size_t i = 1; i < count; i++) {
        const struct host_port *p = &taken[i];
        size_t mark = c->path_n;
        if (!same_host_port(taken[i - 1].port, p->port))
            continue;
        api_enter_index(c, p->container);
        api_enter(c, "ports");
        api_enter_index(c, p->index);
        api_fault_at(c, "hostPort", "%d/%s is used by another port of this pod, too", (int)p->port->host_port,
                     p->port->protocol != NULL ? p->port->protocol : "TCP");
        api_leave(c, mark);
    }
    free(taken);
}

static void check_ports(struct api_check *c, const struct api_pod_spec *spec,
                        const struct api_container *container, bool init)
{
    size_t outer = api_enter(c, "ports");

    for (size_t i = 0; i < container->n_ports; i++) {
        const struct api_port *port = &container->ports[i];
        size_t mark = api_enter_index(c, i);
        for (size_t k = 0; k < i && port->name != NULL; k++) {
            if (str_eq(container->ports[k].name, port->name)) {
                api_fault_at(c, "name", "%s is given twice", QUOTE(port->name));
                break;
            }
        }
        if (!init && spec->host_network && port->container_port != 0 &&
            port->host_port != port->container_port)
            api_fault_at(c, "hostPort", "%d must be the containerPort %d when hostNetwork is true",
                         (int)port->host_port, (int)port->container_port);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

/* ---- mounts ---- */
static void check_mount_modes(struct api_check *c, const struct api_volume_mount *m, bool privileged,
                              bool host_users)
{
    bool propagates = m->mount_propagation != NULL && strcmp(m->mount_propagation, "None") != 0;

    if (str_eq(m->mount_propagation, "Bidirectional") && !privileged)
        api_fault_at(c, "mountPropagation", "Bidirectional is only allowed for privileged containers");
    else if (str_eq(m->mount_propagation, "Bidirectional") && !host_users) /* the kernel never allows it */
        api_fault_at(
            c, "mountPropagation",
            "Bidirectional has no effect when hostUsers is false: mounts made in a user namespace do "
            "not show outside of it");
    if (m->recursive_read_only == NULL || strcmp(m->recursive_read_only, "Disabled") == 0)
        return;
    if (!m->read_only)
        api_fault_at(c, "recursiveReadOnly", "%s needs readOnly to be true", m->recursive_read_only);
    if (propagates)
        api_fault_at(c, "recursiveReadOnly", "%s cannot be combined with mountPropagation %s",
                     m->recursive_read_only, m->mount_propagation);
}

static bool device_has(const json_t *devices, const char *field, const char *text)
{
    json_t *device;
    size_t i;

    json_array_foreach (devices, i, device) {
        if (str_eq(json_string_value(json_object_get(device, field)), text))
            return true;
    }
    return false;
}

/* pkg/apis/core/validation: ValidateVolumeDevices. */
static void check_devices(struct api_check *c, const struct api_pod_spec *spec,
                          const struct api_container *container)
{
    size_t outer = api_enter(c, "volumeDevices");

    for (size_t i = 0; i < container->n_devices; i++) {
        const struct api_volume_device *d = &container->devices[i];
        const struct api_volume *volume = d->name != NULL ? api_volume_find(spec, d->name) : NULL;
        size_t mark = api_enter_index(c, i);

        if (d->name != NULL && volume == NULL)
            api_fault_at(c, "name", "there is no volume %s in this pod", QUOTE(d->name));
        else if (d->name != NULL && volume->kind != API_VOL_CLAIM)
            api_fault_at(c, "name",
                         "can only use volume source type of PersistentVolumeClaim or Ephemeral for block "
                         "mode");
        for (size_t k = 0; k < i; k++) {
            if (str_eq(container->devices[k].path, d->path))
                api_fault_at(c, "devicePath", "%s is given twice in this container", QUOTE(d->path));
            if (str_eq(container->devices[k].name, d->name))
                api_fault_at(c, "name", "%s is given twice in this container", QUOTE(d->name));
        }
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

static void check_mounts(struct api_check *c, const struct api_pod_spec *spec,
                         const struct api_container *container, const json_t *devices)
{
    size_t outer = api_enter(c, "volumeMounts");

    for (size_t i = 0; i < container->n_mounts; i++) {
        const struct api_volume_mount *m = &container->mounts[i];
        size_t mark = api_enter_index(c, i);
        const struct api_volume *volume = m->name != NULL ? api_volume_find(spec, m->name) : NULL;
        if (m->name != NULL && volume == NULL)
            api_fault_at(c, "name", "there is no volume %s in this pod", QUOTE(m->name));
        for (size_t k = 0; k < i && m->mount_path != NULL; k++) {
            if (str_eq(container->mounts[k].mount_path, m->mount_path)) {
                api_fault_at(c, "mountPath", "%s is given twice in this container", QUOTE(m->mount_path));
                break;
            }
        }
        if (m->name != NULL && device_has(devices, "name", m->name))
            api_fault_at(c, "name", "%s is used in volumeDevices, too", QUOTE(m->name));
        if (m->mount_path != NULL && device_has(devices, "devicePath", m->mount_path))
            api_fault_at(c, "mountPath", "%s is used in volumeDevices, too", QUOTE(m->mount_path));
        if (m->sub_path != NULL && m->sub_path_expr != NULL)
            api_fault_at(c, "subPathExpr", "not allowed together with subPath");
        check_mount_modes(c, m, container->security.privileged, api_pod_host_users(spec));
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

/* ---- resize policy, restart rules, stop signal ---- */
static void check_resize_policy(struct api_check *c, const json_t *list, bool never)
{
    size_t outer = api_enter(c, "resizePolicy"), i;
    bool cpu = false, memory = false;
    json_t *policy;

    json_array_foreach (list, i, policy) {
        const char *name = json_string_value(json_object_get(policy, "resourceName"));
        const char *restart = json_string_value(json_object_get(policy, "restartPolicy"));
        size_t mark = api_enter_index(c, i);
        if ((str_eq(name, "cpu") && cpu) || (str_eq(name, "memory") && memory))
            api_fault_at(c, "resourceName", "%s is given twice", QUOTE(name));
        cpu = cpu || str_eq(name, "cpu");
        memory = memory || str_eq(name, "memory");
        if (never && str_eq(restart, "RestartContainer"))
            api_fault_at(c, "restartPolicy", "must be NotRequired when the pod's restartPolicy is Never");
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

static void check_restart_rules(struct api_check *c, const struct api_container *container,
                                const json_t *list)
{
    size_t outer = api_enter(c, "restartPolicyRules"), i;
    json_t *rule;

    if (json_array_size(list) > 0 && container->restart_policy == API_RESTART_UNSET)
        api_fault(c, "need the container's restartPolicy to be set");
    if (json_array_size(list) > RESTART_RULES_MAX)
        api_fault(c, "%zu are too many, at most %d are allowed", json_array_size(list), RESTART_RULES_MAX);
    json_array_foreach (list, i, rule) {
        size_t n = json_array_size(json_object_get(json_object_get(rule, "exitCodes"), "values"));
        size_t mark = api_enter_index(c, i);
        if (n > EXIT_CODES_MAX)
            api_fault_at(c, "exitCodes.values", "%zu are too many, at most %d are allowed", n,
                         EXIT_CODES_MAX);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

/* ---- ephemeral containers ---- */

/* pkg/apis/core/validation: fields that an ephemeral container may not have. */
static void check_ephemeral_fields(struct api_check *c, const struct api_container *container,
                                   const json_t *object)
{
    static const char *const fields[] = {
        "ports",     "livenessProbe", "readinessProbe", "startupProbe",
        "lifecycle", "resizePolicy",  "restartPolicy",  "restartPolicyRules"
    };
    static const char *const lists[] = { "limits", "requests", "claims" };
    static const char reason[] = "not allowed for ephemeral containers";
    size_t mark;

    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (json_object_get(object, fields[i]) != NULL)
            api_fault_at(c, fields[i], "%s", reason);
    mark = api_enter(c, "resources");
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (json_object_get(json_object_get(object, "resources"), lists[i]) != NULL)
            api_fault_at(c, lists[i], "%s", reason);
    api_leave(c, mark);
    mark = api_enter(c, "volumeMounts");
    for (size_t i = 0; i < container->n_mounts; i++) {
        size_t element = api_enter_index(c, i);
        if (container->mounts[i].sub_path != NULL)
            api_fault_at(c, "subPath", "%s", reason);
        if (container->mounts[i].sub_path_expr != NULL)
            api_fault_at(c, "subPathExpr", "%s", reason);
        api_leave(c, element);
    }
    api_leave(c, mark);
}

static void check_ephemeral(struct api_check *c, const struct api_pod_spec *spec, const json_t *object,
                            size_t index)
{
    const struct api_container *container = &spec->ephemeral_containers[index];
    const char *name = container->name, *target = container->target;

    if (name != NULL && (has_name(spec->ephemeral_containers, index, name) ||
                         has_name(spec->containers, spec->n_containers, name) ||
                         has_name(spec->init_containers, spec->n_init_containers, name)))
        api_fault_at(c, "name", "%s is the name of another container of this pod, too", QUOTE(name));
    if (target != NULL && !has_name(spec->containers, spec->n_containers, target) &&
        !has_name(spec->init_containers, spec->n_init_containers, target))
        api_fault_at(c, "targetContainerName", "there is no container %s in this pod", QUOTE(target));
    check_ephemeral_fields(c, container, object);
    check_mounts(c, spec, container, json_object_get(object, "volumeDevices"));
    check_devices(c, spec, container);
    api_validate_env(c, spec, container);
    api_validate_security(c, container, json_object_get(object, "securityContext"), spec);
}

/* ---- all together ---- */
static void check_container(struct api_check *c, const struct api_pod_spec *spec, const json_t *object,
                            const struct api_container *v, size_t index, bool init, bool os_named)
{
    const struct api_container *container = &v[index];
    size_t mark;

    validate_container_check_name(c, spec, container, index, init);
    check_ports(c, spec, container, init);
    check_mounts(c, spec, container, json_object_get(object, "volumeDevices"));
    check_devices(c, spec, container);
    api_validate_env(c, spec, container);
    mark = api_enter(c, "resources");
    api_validate_resources(c, &container->resources, false);
    api_leave(c, mark);
    check_resize_policy(c, json_object_get(object, "resizePolicy"),
                        spec->restart_policy == API_RESTART_NEVER);
    check_restart_rules(c, container, json_object_get(object, "restartPolicyRules"));
    api_validate_probes(c, container, object, init, spec->termination_grace_seconds);
    if (container->stop_signal != NULL && !os_named)
        api_fault_at(c, "lifecycle.stopSignal", "needs spec.os.name to be set");
    api_validate_security(c, container, json_object_get(object, "securityContext"), spec);
}

void api_validate_containers(struct api_check *c, const struct api_pod_spec *spec, const json_t *json)
{
    bool os_named = json_string_value(json_object_get(json_object_get(json, "os"), "name")) != NULL;
    const json_t *list = json_object_get(json, "containers");
    size_t outer = api_enter(c, "containers");

    for (size_t i = 0; i < spec->n_containers; i++) {
        size_t mark = api_enter_index(c, i);
        check_container(c, spec, json_array_get(list, i), spec->containers, i, false, os_named);
        api_leave(c, mark);
    }
    check_host_ports(c, spec->containers, 0, spec->n_containers);
    api_leave(c, outer);
    outer = api_enter(c, "initContainers");
    list = json_object_get(json, "initContainers");
    for (size_t i = 0; i < spec->n_init_containers; i++) {
        size_t mark = api_enter_index(c, i);
        check_container(c, spec, json_array_get(list, i), spec->init_containers, i, true, os_named);
        api_leave(c, mark);
        check_host_ports(c, spec->init_containers, i, 1); /* each separately, as in Kubernetes */
    }
    api_leave(c, outer);
    if (!c->joined) /* refused as a whole */
        return;
    outer = api_enter(c, "ephemeralContainers");
    list = json_object_get(json, "ephemeralContainers");
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++) {
        size_t mark = api_enter_index(c, i);
        check_ephemeral(c, spec, json_array_get(list, i), i);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}
