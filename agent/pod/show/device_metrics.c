/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of device plugins under kubelet's names, and how many devices each resource has. */
#include "agent/pod/core/usage_text.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/show/devices.h"
#include "deviceplugin/plugin/counts.h"

static void device_metrics_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* `name{resource_name="..."`, without the closing brace. */
static void put_name(struct buf *out, const char *name, const char *suffix, const char *resource)
{
    buf_addf(out, "%s%s{", name, suffix);
    usage_label(out, "resource_name", resource, true);
}

static void put_value(struct buf *out, const char *name, const char *resource, uint64_t value)
{
    put_name(out, name, "", resource);
    buf_addf(out, "} %llu\n", (unsigned long long)value);
}

/* ---- plugins ---- */

static void put_registrations(struct buf *out, const struct dp_counts *c)
{
    static const char name[] = "kubelet_device_plugin_registration_total";

    device_metrics_head(out, name, "counter", "Registrations of device plugins, also refused ones.");
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].registrations > 0)
            put_value(out, name, c->v[i].resource, c->v[i].registrations);
}

static void put_allocations(struct buf *out, const struct dp_counts *c)
{
    static const char name[] = "kubelet_device_plugin_alloc_duration_seconds";

    device_metrics_head(out, name, "histogram", "Time that device plugins took to answer Allocate.");
    for (size_t i = 0; i < c->n; i++) {
        const struct dp_count *one = &c->v[i];

        if (one->allocations == 0)
            continue;
        for (size_t k = 0; k < DP_ALLOC_BUCKETS; k++) {
            put_name(out, name, "_bucket", one->resource);
            buf_addf(out, ",le=\"%s\"} %llu\n", dp_alloc_bounds[k].text, (unsigned long long)one->buckets[k]);
        }
        put_name(out, name, "_bucket", one->resource);
        buf_addf(out, ",le=\"+Inf\"} %llu\n", (unsigned long long)one->allocations);
        put_name(out, name, "_sum", one->resource);
        buf_adds(out, "} ");
        usage_value(out, one->took_ns, UNIT_NS);
        buf_addc(out, '\n');
        put_name(out, name, "_count", one->resource);
        buf_addf(out, "} %llu\n", (unsigned long long)one->allocations);
    }
}

/* ---- admission ---- */

static void put_admissions(struct buf *out, const struct admissions *a)
{
    static const char requests[] = "kubelet_topology_manager_admission_requests_total",
                      errors[] = "kubelet_topology_manager_admission_errors_total",
                      took[] = "kubelet_topology_manager_admission_duration_ms";

    device_metrics_head(out, requests, "counter", "Pods admitted or refused by their devices and topology.");
    buf_addf(out, "%s %llu\n", requests, (unsigned long long)a->pods);
    device_metrics_head(out, errors, "counter", "Pods refused because of topology.");
    buf_addf(out, "%s %llu\n", errors, (unsigned long long)a->refused);
    device_metrics_head(out, took, "histogram", "Time of these decisions, in milliseconds.");
    for (unsigned i = 0; i < ADMISSION_BUCKETS; i++)
        buf_addf(out, "%s_bucket{le=\"%g\"} %llu\n", took, (double)admissions_bound_ns(i) / 1e6,
                 (unsigned long long)a->buckets[i]);
    buf_addf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", took,
             (unsigned long long)a->pods, took, (double)a->took_ns / 1e6, took, (unsigned long long)a->pods);
}

/* ---- resources ---- */

static uint64_t held(const struct node *n, const struct dp_resource *r)
{
    const struct dp_owned *one = NULL;
    uint64_t sum = 0;

    while ((one = dp_holdings_owned_next(devices_holdings(n), r->name, one)) != NULL)
        sum++;
    return sum;
}

static uint64_t capacity(const struct node *n, const struct dp_resource *r)
{
    (void)n;
    return (uint64_t)dp_resource_capacity(r);
}

static uint64_t allocatable(const struct node *n, const struct dp_resource *r)
{
    (void)n;
    return (uint64_t)dp_resource_allocatable(r);
}

static void put_resources(const struct node *n, struct buf *out)
{
    static const struct {
        const char *name, *help;
        uint64_t (*of)(const struct node *n, const struct dp_resource *r);
    } gauges[] = {
        { "coracle_extended_resource_capacity", "Capacity of an extended resource.", capacity },
        { "coracle_extended_resource_allocatable",
          "Healthy devices of an extended resource, or its configured number.", allocatable },
        { "coracle_extended_resource_held_devices", "Devices of an extended resource that pods hold.", held },
    };

    /* A resource that is only a number has no held devices. */
    for (size_t i = 0; i < ARRAY_LEN(gauges); i++) {
        const struct dp_resource *r = dp_inventory_next(devices_inventory(n), NULL);

        if (r != NULL)
            device_metrics_head(out, gauges[i].name, "gauge", gauges[i].help);
        for (; r != NULL; r = dp_inventory_next(devices_inventory(n), r))
            if (gauges[i].of != held || r->provider != NULL || r->count < 0)
                put_value(out, gauges[i].name, r->name, gauges[i].of(n, r));
    }
}

void devices_metrics(const struct node *n, struct buf *out)
{
    const struct dp_counts *c = devices_plugins(n) != NULL ? dp_plugins_counts(devices_plugins(n)) : NULL;

    if (c != NULL && c->n > 0) {
        put_registrations(out, c);
        put_allocations(out, c);
    }
    put_admissions(out, devices_admissions(n));
    if (devices_inventory(n) != NULL)
        put_resources(n, out);
}
