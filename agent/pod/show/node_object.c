/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/node_object.h"

#include "agent/pod/core/node_labels.h"
#include "agent/pod/core/node_written.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/limits/hugepages.h"
#include "agent/pod/show/node_machine.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* ---- resources ---- */

typedef int64_t (*amount_fn)(const struct node *n, const char *resource);

static void node_object_put_amount(json_t *to, const char *resource, int64_t amount)
{
    const bool cpu = strcmp(resource, "cpu") == 0,
               count = strcmp(resource, "pods") == 0 || strchr(resource, '/') != NULL;
    char text[32];

    if (amount < 0)
        return;
    if (cpu && amount % 1000 != 0)
        snprintf(text, sizeof(text), "%" PRId64 "m", amount);
    else if (cpu)
        snprintf(text, sizeof(text), "%" PRId64, amount / 1000);
    else if (!count && amount % 1024 == 0 && amount > 0)
        snprintf(text, sizeof(text), "%" PRId64 "Ki", amount / 1024);
    else
        snprintf(text, sizeof(text), "%" PRId64, amount);
    json_put_str(to, resource, text);
}

static json_t *amounts(const struct node *n, amount_fn of)
{
    static const char *const resources[] = { "cpu", "ephemeral-storage", "memory", "pods" };
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX];
    const struct dp_inventory *devices = devices_inventory(n);
    const struct dp_resource *r = NULL;
    size_t n_sizes = hugepages_sizes(n, sizes);
    json_t *all = json_object();

    for (size_t i = 0; i < ARRAY_LEN(resources); i++)
        node_object_put_amount(all, resources[i], of(n, resources[i]));
    for (size_t i = 0; i < n_sizes; i++)
        node_object_put_amount(all, sizes[i].resource, of(n, sizes[i].resource));
    while (devices != NULL && (r = dp_inventory_next(devices, r)) != NULL)
        node_object_put_amount(all, r->name, of(n, r->name));
    return all;
}

/* ---- the object ---- */

static json_t *node_object_metadata(const struct node *n)
{
    json_t *meta = json_object(), *labels = json_object();
    char created[CLOCK_RFC3339_SIZE];
    size_t n_labels = 0;
    mem_auto struct api_kv *v = node_labels(n, &n_labels);

    clock_format_s(n->opened_ns, created);
    json_put_str(meta, "name", n->o.node_name);
    /* when the agent started, because it does not register anywhere */
    json_put_str(meta, "creationTimestamp", created);
    for (size_t i = 0; i < n_labels; i++)
        json_put_str(labels, v[i].key, v[i].value);
    json_object_set_new(meta, "labels", labels);
    return meta;
}

static json_t *spec(const struct node *n)
{
    json_t *o = json_object(), *taints = node_taints_json(n);

    eviction_taints(n, taints);
    if (json_array_size(taints) > 0)
        json_object_set(o, "taints", taints);
    json_decref(taints);
    json_put_str(o, "podCIDR", n->o.pod_cidr != NULL && n->o.pod_cidr[0] != '\0' ? n->o.pod_cidr : NULL);
    return o;
}

static json_t *info(const struct node *n)
{
    struct utsname u = { 0 };
    json_t *o = json_object();

    uname(&u);
    json_put_str(o, "architecture", node_architecture(&u));
    json_put_str(o, "bootID", n->boot_id);
    json_put_str(o, "kernelVersion", u.release);
    json_put_str(o, "operatingSystem", "linux");
    json_put_str(o, "kubeletVersion", "v" CORACLE_VERSION);
    json_object_set_new(o, "kubeProxyVersion", json_string("")); /* never left out, as in Go */
    node_machine_put(o, "");
    if (n->o.swap_bytes > 0)
        json_object_set_new(o, "swap", json_pack("{s:I}", "capacity", (json_int_t)n->o.swap_bytes));
    json_put_str(o, "containerRuntimeVersion", POD_RUNTIME_SCHEME CORACLE_VERSION);
    return o;
}

static json_t *addresses(const struct node *n)
{
    json_t *list = json_array();

    if (n->o.node_ip != NULL && n->o.node_ip[0] != '\0')
        json_array_append_new(list, json_pack("{s:s, s:s}", "type", "InternalIP", "address", n->o.node_ip));
    json_array_append_new(list, json_pack("{s:s, s:s}", "type", "Hostname", "address", n->o.node_name));
    return list;
}

/* The runtimes' features; the default is the one without a name. */
static json_t *handlers(const struct node *n)
{
    const char *names[RT_HANDLERS_MAX + 1] = { "" };
    size_t all = n->rt != NULL ? rt_handler_names(n->rt, names, ARRAY_LEN(names)) : 1;
    json_t *list = json_array();

    for (size_t i = 0; i < all; i++) {
        const struct rt_features *f = n->rt != NULL ? rt_handler_features(n->rt, names[i]) : NULL;

        json_array_append_new(list, json_pack("{s:s, s:{s:b, s:b}}", "name", names[i], "features",
                                              "recursiveReadOnlyMounts", f != NULL && f->recursive_read_only,
                                              "userNamespaces", f != NULL && f->user_namespaces));
    }
    return list;
}

#define IMAGE_NAMES_MAX 5 /* kubelet's maxNamesPerImageInNodeStatus */

static int by_size(const void *a, const void *b)
{
    json_int_t x = json_int(*(json_t *const *)a, "sizeBytes", 0),
               y = json_int(*(json_t *const *)b, "sizeBytes", 0);

    return (x < y) - (x > y);
}

/* The largest first, at most `max` (below 0: all). */
static json_t *images(const struct node *n, int64_t max)
{
    json_auto_t *all = img_list(n->o.images);
    json_t *list = json_array(), *one;
    mem_auto json_t **sorted = calloc(json_array_size(all) + 1, sizeof(json_t *));
    size_t i;

    if (sorted == NULL)
        return list;
    json_array_foreach (all, i, one)
        sorted[i] = one;
    if (json_array_size(all) > 1)
        qsort(sorted, json_array_size(all), sizeof(json_t *), by_size);
    for (i = 0; i < json_array_size(all) && (max < 0 || (int64_t)i < max); i++) {
        const json_t *names = json_object_get(sorted[i], "names");
        json_t *kept = json_array();

        for (size_t k = 0; k < json_array_size(names) && k < IMAGE_NAMES_MAX; k++)
            json_array_append(kept, json_array_get(names, k));
        json_array_append_new(
            list, json_pack("{s:o, s:I}", "names", kept, "sizeBytes", json_int(sorted[i], "sizeBytes", 0)));
    }
    return list;
}

void node_object_complete(const struct node *n, json_t *object, int64_t max_images, int64_t port)
{
    json_t *status = json_object_get(object, "status");

    json_t *meta = json_object_get(object, "metadata");

    if (json_object_get(meta, "annotations") == NULL) /* what was written has them all */
        json_object_set_new(
            meta, "annotations",
            json_pack("{s:s}", "volumes.kubernetes.io/controller-managed-attach-detach", "true"));
    if (port > 0)
        json_object_set_new(status, "daemonEndpoints",
                            json_pack("{s:{s:I}}", "kubeletEndpoint", "Port", (json_int_t)port));
    json_object_set_new(status, "images", images(n, max_images));
    json_object_set_new(status, "features", json_pack("{s:b}", "supplementalGroupsPolicy", 1));
    /* Of the features that kubelet declares for the scheduler, those that are known to exist here as well. */
    json_object_set_new(
        status, "declaredFeatures",
        json_pack("[s, s]", "ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"));
}

json_t *node_object(const struct node *n, const char *not_ready)
{
    json_t *condition =
        json_pack("{s:s, s:s, s:s, s:s}", "type", "Ready", "status", not_ready == NULL ? "True" : "False",
                  "reason", not_ready == NULL ? "KubeletReady" : "KubeletNotReady", "message",
                  not_ready == NULL ? "coracle is posting ready status" : not_ready);

    json_t *conditions = json_array(), *object;

    eviction_conditions(n, conditions);
    json_array_append_new(conditions, condition); /* last, as in kubelet */
    object =
        json_pack("{s:s, s:s, s:o, s:o, s:{s:o, s:o, s:o, s:o, s:o, s:o}}", "kind", "Node", "apiVersion",
                  "v1", "metadata", node_object_metadata(n), "spec", spec(n), "status", "capacity",
                  amounts(n, node_capacity), "allocatable", amounts(n, node_allocatable), "conditions",
                  conditions, "addresses", addresses(n), "nodeInfo", info(n), "runtimeHandlers", handlers(n));
    if (object != NULL)
        node_written_show(n, object);
    return object;
}
