/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum: 32-bit FNV-1a of the data as Go's spew prints them (k8s.io/apimachinery/pkg/util/dump,
 * ForHash: "%#v", sorted keys, no methods, addresses or capacities). The form was derived from recorded
 * files:
 *
 *   (checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)[{PodUID:(string)7a0e
 *   ContainerName:(string)main ResourceName:(string)example.com/dev
 * DeviceIDs:(checkpoint.DevicesPerNUMA)map[-1: [dev-1 dev-0]] AllocResp:([]uint8)[10 22]}]
 * RegisteredDevices:(map[string][]string)map[example.com/dev:[dev-0]]}
 *
 * in one line with single blanks. A type precedes each member of a struct, but not the elements of slices and
 * maps; strings have no quotes; nil is <nil>.
 */
#include "deviceplugin/checkpoint/checkpoint_data.h"

#include <stdio.h>
#include <string.h>

#define FNV_BASIS 2166136261u
#define FNV_PRIME 16777619u

static uint32_t add_char(uint32_t sum, unsigned c)
{
    return (sum ^ c) * FNV_PRIME;
}

static uint32_t add(uint32_t sum, const char *text)
{
    for (; *text != '\0'; text++)
        sum = add_char(sum, (unsigned char)*text);
    return sum;
}

static uint32_t add_number(uint32_t sum, int64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)n);
    return add(sum, text);
}

/* Answers are most of the data, and printf() would be most of the time. */
static uint32_t add_byte(uint32_t sum, unsigned n)
{
    if (n >= 100)
        sum = add_char(sum, '0' + n / 100);
    if (n >= 10)
        sum = add_char(sum, '0' + n / 10 % 10);
    return add_char(sum, '0' + n % 10);
}

static uint32_t add_ids(uint32_t sum, const struct dp_ck_data *d, const struct dp_ck_range *ids)
{
    if (ids->nil)
        return add(sum, "<nil>");
    sum = add(sum, "[");
    for (size_t i = 0; i < ids->n; i++) {
        sum = add(sum, i > 0 ? " " : "");
        sum = add(sum, d->ids[ids->first + i]);
    }
    return add(sum, "]");
}

static uint32_t add_nodes(uint32_t sum, const struct dp_ck_data *d, const struct dp_ck_range *nodes)
{
    if (nodes->nil)
        return add(sum, "<nil>");
    sum = add(sum, "map[");
    for (size_t i = 0; i < nodes->n; i++) {
        const struct dp_ck_node *node = &d->nodes[nodes->first + i];

        sum = add_number(add(sum, i > 0 ? " " : ""), node->numa);
        sum = add_ids(add(sum, ":"), d, &node->ids);
    }
    return add(sum, "]");
}

static uint32_t add_bytes(uint32_t sum, const uint8_t *bytes, size_t n)
{
    if (bytes == NULL)
        return add(sum, "<nil>");
    sum = add(sum, "[");
    for (size_t i = 0; i < n; i++)
        sum = add_byte(i > 0 ? add_char(sum, ' ') : sum, bytes[i]);
    return add(sum, "]");
}

static uint32_t add_entry(uint32_t sum, const struct dp_ck_data *d, const struct dp_ck_entry *x)
{
    sum = add(add(sum, "{PodUID:(string)"), x->pod_uid);
    sum = add(add(sum, " ContainerName:(string)"), x->container);
    sum = add(add(sum, " ResourceName:(string)"), x->resource);
    sum = add_nodes(add(sum, " DeviceIDs:(checkpoint.DevicesPerNUMA)"), d, &x->nodes);
    sum = add_bytes(add(sum, " AllocResp:([]uint8)"), x->answer, x->n_answer);
    return add(sum, "}");
}

static uint32_t add_entries(uint32_t sum, const struct dp_ck_data *d)
{
    if (d->nil_entries)
        return add(sum, "<nil>");
    sum = add(sum, "[");
    for (size_t i = 0; i < d->n_entries; i++)
        sum = add_entry(add(sum, i > 0 ? " " : ""), d, &d->entries[i]);
    return add(sum, "]");
}

static uint32_t add_resources(uint32_t sum, const struct dp_ck_data *d)
{
    if (d->nil_resources)
        return add(sum, "<nil>");
    sum = add(sum, "map[");
    for (size_t i = 0; i < d->n_resources; i++) {
        sum = add(add(sum, i > 0 ? " " : ""), d->resources[i].name);
        sum = add_ids(add(sum, ":"), d, &d->resources[i].ids);
    }
    return add(sum, "]");
}

uint32_t dp_ck_sum(const struct dp_ck_data *d)
{
    uint32_t sum =
        add(FNV_BASIS, "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)");

    sum = add_entries(sum, d);
    sum = add_resources(add(sum, " RegisteredDevices:(map[string][]string)"), d);
    return add(sum, "}");
}
