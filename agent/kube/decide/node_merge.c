/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/node_merge.h"

#include "agent/kube/decide/patch.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

#define ATTACH_ANNOTATION "volumes.kubernetes.io/controller-managed-attach-detach"

/* Set again on a Node that exists already (kubelet's updateDefaultLabels()), and allowed to nodes although
 * they are in Kubernetes' own namespace. */
static const char *const default_labels[] = { "kubernetes.io/hostname",
                                              "topology.kubernetes.io/zone",
                                              "topology.kubernetes.io/region",
                                              "failure-domain.beta.kubernetes.io/zone",
                                              "failure-domain.beta.kubernetes.io/region",
                                              "node.kubernetes.io/instance-type",
                                              "beta.kubernetes.io/instance-type",
                                              "kubernetes.io/os",
                                              "kubernetes.io/arch",
                                              "beta.kubernetes.io/os",
                                              "beta.kubernetes.io/arch" };

static bool is_default_label(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(default_labels); i++)
        if (strcmp(default_labels[i], key) == 0)
            return true;
    return false;
}

/* `domain` itself or one below it. */
static bool domain_is(const char *key, size_t n, const char *domain)
{
    size_t d = strlen(domain);

    return n >= d && memcmp(key + n - d, domain, d) == 0 && (n == d || key[n - d - 1] == '.');
}

bool node_label_is_allowed(const char *key)
{
    const char *slash = strchr(key, '/');
    size_t n = slash != NULL ? (size_t)(slash - key) : 0;

    if (slash == NULL || is_default_label(key))
        return true;
    if (domain_is(key, n, "kubelet.kubernetes.io") || domain_is(key, n, "node.kubernetes.io"))
        return true;
    return !domain_is(key, n, "kubernetes.io") && !domain_is(key, n, "k8s.io");
}

/* ---- status ---- */

static json_t *find_condition(const json_t *list, const char *type)
{
    json_t *c;
    size_t i;

    json_array_foreach (list, i, c)
        if (type != NULL && str_eq(json_str(c, "type"), type))
            return c;
    return NULL;
}

/* Those of the apiserver in its order, ours put into their places or behind. */
static json_t *node_merge_conditions(const json_t *theirs, const json_t *ours, const char *now)
{
    json_t *list = theirs != NULL ? json_deep_copy(theirs) : json_array(), *c;
    size_t i;

    json_array_foreach ((json_t *)ours, i, c) {
        json_t *before = find_condition(list, json_str(c, "type")), *copy = json_deep_copy(c);
        json_t *since = json_object_get(before, "lastTransitionTime");

        json_object_set_new(copy, "lastHeartbeatTime", json_string(now));
        if (before != NULL && since != NULL && str_eq(json_str(before, "status"), json_str(c, "status")))
            json_object_set(copy, "lastTransitionTime", since);
        else if (json_str(copy, "lastTransitionTime") == NULL)
            json_object_set_new(copy, "lastTransitionTime", json_string(now));
        if (before == NULL) {
            json_array_append_new(list, copy);
        } else {
            json_object_clear(before);
            json_object_update(before, copy);
            json_decref(copy);
        }
    }
    return list;
}

/* Extended resources of other clients stay (a documented use of nodes/status). */
static void keep_extended(json_t *to, const json_t *theirs, const json_t *ours, const char *list)
{
    const char *resource;
    json_t *amount, *merged;

    if (json_object_get(ours, list) == NULL)
        return;
    merged = json_deep_copy(json_object_get(ours, list));
    json_object_foreach (json_object_get(theirs, list), resource, amount)
        if (strchr(resource, '/') != NULL && json_object_get(merged, resource) == NULL)
            json_object_set(merged, resource, amount);
    json_object_set_new(to, list, merged);
}

json_t *node_status_merge(const json_t *theirs, const json_t *ours, const char *now)
{
    static const char *const of_node[] = { "addresses",       "daemonEndpoints", "nodeInfo",        "images",
                                           "runtimeHandlers", "features",        "declaredFeatures" };
    const json_t *before = json_object_get(theirs, "status"), *found = json_object_get(ours, "status");
    json_t *to = before != NULL ? json_deep_copy(before) : json_object();

    if (to == NULL)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(of_node); i++) {
        json_t *v = json_object_get(found, of_node[i]);

        if (v == NULL || json_is_null(v))
            json_object_del(to, of_node[i]);
        else
            json_object_set_new(to, of_node[i], json_deep_copy(v));
    }
    /* Without it the daemon does not know yet: volumes that are in use must not seem to be free. */
    if (json_object_get(found, "volumesInUse") != NULL)
        json_object_set_new(to, "volumesInUse", json_deep_copy(json_object_get(found, "volumesInUse")));
    keep_extended(to, before, found, "capacity");
    keep_extended(to, before, found, "allocatable");
    json_object_set_new(to, "conditions",
                        node_merge_conditions(json_object_get(before, "conditions"),
                                              json_object_get(found, "conditions"), now));
    return to;
}

static json_t *without(const json_t *status, bool images)
{
    json_t *copy = json_deep_copy(status), *c;
    size_t i;

    json_array_foreach (json_object_get(copy, "conditions"), i, c)
        json_object_del(c, "lastHeartbeatTime");
    if (!images)
        json_object_del(copy, "images");
    return copy;
}

static bool differs_without(const json_t *a, const json_t *b, bool images)
{
    json_t *x = without(a, images), *y = without(b, images);
    bool differs = !patch_equal(x, y);

    json_decref(x);
    json_decref(y);
    return differs;
}

bool node_status_differs(const json_t *theirs_status, const json_t *status)
{
    return differs_without(theirs_status, status, true);
}

bool node_status_is_urgent(const json_t *theirs_status, const json_t *status)
{
    return differs_without(theirs_status, status, false);
}

/* ---- bodies ---- */

static void put_metadata(json_t *to, const json_t *ours)
{
    const json_t *meta = json_object_get(ours, "metadata");
    json_t *labels = json_object(), *v, *annotations = json_object_get(meta, "annotations");
    const char *key;

    json_object_foreach (json_object_get(meta, "labels"), key, v)
        if (node_label_is_allowed(key))
            json_object_set(labels, key, v);
    if (json_object_size(labels) > 0)
        json_object_set(to, "labels", labels);
    json_decref(labels);
    if (json_object_size(annotations) > 0)
        json_object_set(to, "annotations", annotations);
}

json_t *node_registration(const json_t *ours, const json_t *config, const char *now)
{
    json_t *meta = json_object(), *spec = json_object();
    json_t *taints = json_object_get(config, "taints");

    json_put_str(meta, "name", json_str(json_object_get(ours, "metadata"), "name"));
    put_metadata(meta, ours);
    json_put_str(spec, "providerID", json_str(config, "providerID"));
    if (json_array_size(taints) > 0)
        json_object_set(spec, "taints", taints);
    if (json_flag(config, "unschedulable"))
        json_object_set(spec, "unschedulable", json_true());
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "kind", "Node", "apiVersion", "v1", "metadata", meta,
                     "spec", spec, "status", node_status_merge(NULL, ours, now));
}

static void patch_addresses(json_t *patch, const json_t *theirs, const json_t *status)
{
    json_t *to = json_object_get(status, "addresses"), *list;
    const json_t *from = json_object_get(json_object_get(theirs, "status"), "addresses");

    if (json_array_size(from) == 0 || patch_equal(from, to))
        return;
    list = to != NULL ? json_deep_copy(to) : json_array();
    json_array_append_new(list, json_pack("{s:s}", "$patch", "replace"));
    json_object_set_new(patch, "addresses", list);
    json_object_del(patch, "$setElementOrder/addresses");
}

static void reconcile_labels(json_t *patch, const json_t *theirs, const json_t *ours)
{
    const json_t *from = json_object_get(theirs, "metadata"), *to = json_object_get(ours, "metadata");
    const char *attach = json_str(json_object_get(to, "annotations"), ATTACH_ANNOTATION),
               *attached = json_str(json_object_get(from, "annotations"), ATTACH_ANNOTATION);
    json_t *labels = json_object(), *meta = json_object();

    for (size_t i = 0; i < ARRAY_LEN(default_labels); i++) {
        const char *value = json_str(json_object_get(to, "labels"), default_labels[i]);

        if (value != NULL && !str_eq(value, json_str(json_object_get(from, "labels"), default_labels[i])))
            json_object_set_new(labels, default_labels[i], json_string(value));
    }
    if (json_object_size(labels) > 0)
        json_object_set(meta, "labels", labels);
    if (!str_eq(attach, attached))
        json_object_set_new(meta, "annotations", json_pack("{s:s?}", ATTACH_ANNOTATION, attach));
    if (json_object_size(meta) > 0)
        json_object_set(patch, "metadata", meta);
    json_decref(labels);
    json_decref(meta);
}

json_t *node_status_patch(const json_t *theirs, const json_t *ours, const json_t *status, bool reconcile)
{
    json_t *patch = json_object(), *inner = patch_two_way(json_object_get(theirs, "status"), status);

    if (patch == NULL || inner == NULL) {
        json_decref(inner);
        json_decref(patch);
        return NULL;
    }
    patch_addresses(inner, theirs, status);
    if (reconcile)
        reconcile_labels(patch, theirs, ours);
    if (json_object_size(inner) > 0)
        json_object_set(patch, "status", inner);
    json_decref(inner);
    return patch;
}
