/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the settings for the node's own resources to numbers; each was checked when it was read. */
#include "agent/api/quantity.h"
#include "agent/config/internal.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

#define THROTTLING 0.9 /* kubelet's default memoryThrottlingFactor (1.36) */

static const json_t *config_resources_of(const struct agent_config *c, const char *key)
{
    return config_effective(c->state, config_find_key(DOC_KUBELET, key));
}

static int64_t amount(const json_t *map, const char *name, bool milli)
{
    const char *text = json_str(map, name);
    struct quantity q;

    if (text == NULL || quantity_parse(text, &q, ERR_IGNORED) != ERR_OK)
        return 0;
    return milli ? quantity_milli(&q) : quantity_value(&q);
}

static struct api_reserved reserved(const json_t *map)
{
    return (struct api_reserved){
        .cpu_milli = amount(map, "cpu", true),
        .memory_bytes = amount(map, "memory", false),
        .storage_bytes = amount(map, "ephemeral-storage", false),
        .pids = amount(map, "pid", false),
    };
}

/* "100Mi", "5%". As in kubelet, 0% and 100% mean no threshold, and a percentage has a float's precision. */
static struct api_threshold threshold(const json_t *map, const char *signal)
{
    const char *text = json_str(map, signal);
    struct api_threshold t = { 0 };

    if (text == NULL)
        return t;
    if (!str_ends(text, "%")) {
        t.bytes = amount(map, signal, false);
        return t;
    }
    t.share = (double)(strtof(text, NULL) / 100);
    if (t.share >= 1)
        t.share = 0;
    return t;
}

/* The number of CPUs in "0-3,7". */
static int64_t count_cpus(const char *list)
{
    int64_t n = 0;

    while (*list != '\0') {
        char *end;
        unsigned long from = strtoul(list, &end, 10), to = from;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        n += (int64_t)(to - from) + 1;
        list = *end == ',' ? end + 1 : "";
    }
    return n;
}

static unsigned enforce(const json_t *list)
{
    static const struct {
        const char *name;
        unsigned bit;
    } words[] = {
        { "pods", API_ENFORCE_PODS },
        { "system-reserved", API_ENFORCE_SYSTEM },
        { "system-reserved-compressible", API_ENFORCE_SYSTEM_CPU },
        { "kube-reserved", API_ENFORCE_KUBE },
        { "kube-reserved-compressible", API_ENFORCE_KUBE_CPU },
    };
    unsigned bits = 0;
    json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        for (size_t k = 0; k < ARRAY_LEN(words); k++)
            if (str_eq(json_string_value(item), words[k].name))
                bits |= words[k].bit;
    return bits;
}

static int64_t log_max_bytes(const json_t *setting)
{
    const char *text = json_string_value(setting);
    struct quantity q;

    return text != NULL && quantity_parse(text, &q, ERR_IGNORED) == ERR_OK ? quantity_value(&q) : 0;
}

void config_apply_resources(struct agent_config *c)
{
    struct api_node_resources *r = &c->resources;
    const char *cpus = json_string_value(config_resources_of(c, "reservedSystemCPUs"));
    const json_t *hard = config_resources_of(c, "evictionHard"),
                 *factor = config_resources_of(c, "memoryThrottlingFactor");

    c->log_max_bytes = log_max_bytes(config_resources_of(c, "containerLogMaxSize"));
    *r = (struct api_node_resources){
        .system = reserved(config_resources_of(c, "systemReserved")),
        .kube = reserved(config_resources_of(c, "kubeReserved")),
        .evict_memory = threshold(hard, "memory.available"),
        .evict_storage = threshold(hard, "nodefs.available"),
        .enforce = enforce(config_resources_of(c, "enforceNodeAllocatable")),
        .limited_swap =
            str_eq(json_string_value(config_resources_of(c, "memorySwap.swapBehavior")), "LimitedSwap"),
        .single_process_oom = json_is_true(config_resources_of(c, "singleProcessOOMKill")),
        .memory_qos = json_is_true(json_object_get(config_resources_of(c, "featureGates"), "MemoryQoS")),
        .volume_health =
            json_is_true(json_object_get(config_resources_of(c, "featureGates"), "CSIVolumeHealth")),
        .memory_tiers =
            str_eq(json_string_value(config_resources_of(c, "memoryReservationPolicy")), "TieredReservation"),
        .memory_throttling = json_is_number(factor) ? json_number_value(factor) : THROTTLING,
    };
    if (cpus != NULL && cpus[0] != '\0') {
        r->kube.cpu_milli = 0;
        r->system.cpu_milli = count_cpus(cpus) * 1000;
    }
}
