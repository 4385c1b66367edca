/* SPDX-License-Identifier: Apache-2.0 */
/* NodeMetrics and PodMetrics, as metrics-server makes them of kubelet's summary. */
#include "agent/api/serve/internal.h"

#include "agent/api/quantity.h"
#include "base/codec/json.h"

#include <stdio.h>
#include <string.h>

/* The window of the CPU rate. The summary does not contain it; this is metrics-server's resolution. */
#define WINDOW "10s"

static json_t *quantity_json(int64_t nano, int64_t units, enum quantity_format format)
{
    const struct quantity q = { .nano = (__int128)units * 1000000000 + nano, .format = format };
    char text[QUANTITY_TEXT_SIZE];

    quantity_format(&q, text);
    return json_string(text);
}

/* NULL: not known yet; *failed: out of memory. */
static json_t *usage_of(const json_t *o, bool *failed)
{
    const json_t *cpu = json_at(o, "cpu.usageNanoCores"), *memory = json_at(o, "memory.workingSetBytes");
    json_t *usage;

    if (!json_is_integer(cpu) || !json_is_integer(memory))
        return NULL;
    usage = json_object();
    api_put(&usage, "cpu", quantity_json(json_integer_value(cpu), 0, QUANTITY_DECIMAL_SI));
    api_put(&usage, "memory", quantity_json(0, json_integer_value(memory), QUANTITY_BINARY_SI));
    *failed |= usage == NULL;
    return usage;
}

/* Metadata of the measures: name and labels of the measured object. */
static json_t *metadata_of(const char *namespace, const char *name, const char *time, const json_t *labels)
{
    json_t *o = json_pack("{s:s}", "name", name);
    char key[512];

    snprintf(key, sizeof(key), "%s/%s", namespace, name);
    if (namespace[0] != '\0')
        api_put(&o, "namespace", json_string(namespace));
    if (time[0] != '\0')
        api_put(&o, "creationTimestamp", json_string(time));
    if (json_object_get(labels, key) != NULL)
        api_put(&o, "labels", json_incref(json_object_get(labels, key)));
    return o;
}

static json_t *head_of(const char *kind, const char *namespace, const char *name, const char *time,
                       const json_t *labels)
{
    json_t *o = json_pack("{s:s, s:s}", "kind", kind, "apiVersion", "metrics.k8s.io/v1beta1");

    api_put(&o, "metadata", metadata_of(namespace, name, time, labels));
    api_put(&o, "timestamp", time[0] != '\0' ? json_string(time) : json_null());
    api_put(&o, "window", json_string(WINDOW));
    return o;
}

static json_t *node_metrics(const json_t *node, const json_t *labels, bool *failed)
{
    json_t *usage = usage_of(node, failed), *o;

    if (usage == NULL)
        return NULL;
    o = head_of("NodeMetrics", "", api_text_at(node, "nodeName"), api_text_at(node, "cpu.time"), labels);
    api_put(&o, "usage", usage);
    *failed |= o == NULL;
    return o;
}

/* NULL: a container is not known yet, so that the sum would be too small. */
static json_t *pod_metrics(const json_t *pod, const json_t *labels, bool *failed)
{
    const json_t *containers = json_object_get(pod, "containers"), *c;
    const char *time = api_text_at(json_array_get(containers, 0), "cpu.time");
    json_t *list = json_array(), *o;
    size_t i;

    json_array_foreach (containers, i, c) {
        json_t *usage = usage_of(c, failed);
        if (usage == NULL) {
            json_decref(list);
            return NULL;
        }
        api_append(&list, json_pack("{s:s, s:o}", "name", api_text_at(c, "name"), "usage", usage));
    }
    o = head_of("PodMetrics", api_text_at(pod, "podRef.namespace"), api_text_at(pod, "podRef.name"), time,
                labels);
    api_put(&o, "containers", list);
    *failed |= o == NULL;
    return o;
}

/* Adds the known and wanted members. */
static void add_wanted(json_t **items, json_t *one, const struct api_target *target)
{
    const char *namespace = api_text_at(one, "metadata.namespace"), *name = api_text_at(one, "metadata.name");

    if (one == NULL)
        return;
    if ((target->namespace[0] != '\0' && strcmp(namespace, target->namespace) != 0) ||
        (target->name[0] != '\0' && strcmp(name, target->name) != 0))
        json_decref(one);
    else
        api_append(items, one);
}

static json_t *not_found(const struct api_target *target)
{
    json_t *o = api_status(404, "NotFound", NULL, "%s.%s \"%s\" not found", target->kind->plural,
                           target->kind->group, target->name);

    api_put(&o, "details",
            json_pack("{s:s, s:s, s:s}", "name", target->name, "group", target->kind->group, "kind",
                      target->kind->plural));
    return o;
}

json_t *api_metrics_of(const struct api_target *target, const json_t *summary, const json_t *labels,
                       json_t **ret_status)
{
    const bool pods = target->kind->namespaced;
    json_t *items = json_array(), *one;
    bool failed = false;
    size_t i;

    *ret_status = NULL;
    if (!pods)
        add_wanted(&items, node_metrics(json_object_get(summary, "node"), labels, &failed), target);
    json_array_foreach (pods ? json_object_get(summary, "pods") : NULL, i, one)
        add_wanted(&items, pod_metrics(one, labels, &failed), target);
    if (failed || items == NULL) {
        json_decref(items);
        return NULL;
    }
    if (target->name[0] == '\0')
        return json_pack("{s:s, s:s, s:{}, s:o}", "kind", pods ? "PodMetricsList" : "NodeMetricsList",
                         "apiVersion", "metrics.k8s.io/v1beta1", "metadata", "items", items);
    one = json_incref(json_array_get(items, 0));
    json_decref(items);
    if (one == NULL)
        *ret_status = not_found(target);
    return one;
}
