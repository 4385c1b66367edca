/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the managers of processors and memory, under kubelet's names (pkg/kubelet/metrics). */
#include "agent/pod/device/devices.h"
#include "agent/pod/placement/placement.h"
#include "agent/pod/show/placements.h"

#define ALIGNED "kubelet_container_aligned_compute_resources"

static void put(struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name,
             (unsigned long long)value);
}

/* ---- processors ---- */

static void put_per_node(struct buf *out, const struct pl_cpu_manager *c, const struct cpus *given)
{
    static const char name[] = "kubelet_cpu_manager_allocation_per_numa";

    buf_addf(out, "# HELP %s Processors that single containers have, by NUMA node.\n# TYPE %s gauge\n", name,
             name);
    for (size_t i = 0; i < c->m->n_nodes; i++) {
        struct cpus here = pl_cpus_on(c->m, given, 1ull << c->m->node[i].id);

        buf_addf(out, "%s{numa_node=\"%u\"} %u\n", name, c->m->node[i].id, cpus_count(&here));
    }
}

static void put_processors(struct buf *out, const struct pl_cpu_manager *c,
                           const struct placement_counts *counts)
{
    struct cpus available = pl_cpu_available(c), given = { 0 };

    for (size_t i = 0; i < c->state.n; i++)
        given = cpus_or(&given, &c->state.v[i].cpus);
    put(out, "kubelet_cpu_manager_pinning_requests_total", "counter",
        "Allocations of processors for a single container.", counts->cpu_requests);
    put(out, "kubelet_cpu_manager_pinning_errors_total", "counter",
        "Allocations of processors for a single container that failed.", counts->cpu_errors);
    put(out, "kubelet_cpu_manager_shared_pool_size_millicores", "gauge",
        "Processors that can still be given to a single container, in thousandths.",
        1000ull * cpus_count(&available));
    put(out, "kubelet_cpu_manager_exclusive_cpu_allocation_count", "gauge",
        "Processors that single containers have.", cpus_count(&given));
    put_per_node(out, c, &given);
}

/* ---- alignment ---- */

static void put_aligned(struct buf *out, const struct node *n, const struct placement_counts *counts,
                        bool failures)
{
    const struct admissions *a = devices_admissions(n);
    const char *name = failures ? ALIGNED "_failure_count" : ALIGNED "_count";
    const struct pl_cpu_manager *cpus = placement_cpus(n);
    const struct pl_topology *topology = placement_topology(n);

    buf_addf(out, "# HELP %s Containers, or pods, whose resources %s.\n# TYPE %s counter\n", name,
             failures ? "could not be aligned" : "were aligned", name);
    if (cpus != NULL && cpus->o.full_cores)
        buf_addf(out, "%s{boundary=\"physical_cpu\",scope=\"container\"} %llu\n", name,
                 (unsigned long long)(failures ? counts->cores_split : counts->cores_whole));
    if (topology->policy == PL_POLICY_SINGLE_NODE)
        buf_addf(out, "%s{boundary=\"numa_node\",scope=\"%s\"} %llu\n", name,
                 topology->pod_scope ? "pod" : "container",
                 (unsigned long long)(failures ? a->unaligned : a->aligned));
}

void placements_metrics(const struct node *n, struct buf *out)
{
    struct placement_counts counts = placement_counts(n);

    if (!placement_is_on(n))
        return;
    if (placement_cpus(n) != NULL)
        put_processors(out, placement_cpus(n), &counts);
    if (placement_memory(n) != NULL) {
        put(out, "kubelet_memory_manager_pinning_requests_total", "counter",
            "Allocations of memory for a single container.", counts.memory_requests);
        put(out, "kubelet_memory_manager_pinning_errors_total", "counter",
            "Allocations of memory for a single container that failed.", counts.memory_errors);
    }
    put_aligned(out, n, &counts, false);
    put_aligned(out, n, &counts, true);
}
