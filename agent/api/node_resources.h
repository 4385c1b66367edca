/* SPDX-License-Identifier: Apache-2.0 */
/* node_resources - settings for the node's own cpu, memory, swap and process ids: reservations, enforced
 * limits, memory protection. Plain values, copied freely. Sources: kubelet's KubeletConfiguration and
 * pkg/kubelet/cm/node_container_manager_linux.go. */
#ifndef AGENT_API_NODE_RESOURCES_H
#define AGENT_API_NODE_RESOURCES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api_reserved { /* systemReserved or kubeReserved; 0: nothing */
    int64_t cpu_milli, memory_bytes, storage_bytes, pids;
};

struct api_threshold { /* of evictionHard; both 0: none */
    int64_t bytes;
    double share; /* of the capacity, 0 to 1; used if bytes is 0 */
};

enum api_enforce { /* bits: enforceNodeAllocatable */
                   API_ENFORCE_PODS = 1 << 0,
                   API_ENFORCE_SYSTEM = 1 << 1,
                   API_ENFORCE_SYSTEM_CPU = 1 << 2, /* system-reserved-compressible */
                   API_ENFORCE_KUBE = 1 << 3,
                   API_ENFORCE_KUBE_CPU = 1 << 4,
};

struct api_node_resources {
    struct api_reserved system, kube; /* reservedSystemCPUs is in system, replacing the cpu of both */
    struct api_threshold evict_memory, evict_storage; /* memory.available, nodefs.available */
    unsigned enforce;
    bool limited_swap;        /* memorySwap.swapBehavior: LimitedSwap */
    bool single_process_oom;  /* an OOM kill ends one process; kubelet's default on v2: the whole container */
    bool memory_qos;          /* feature gate MemoryQoS */
    bool volume_health;       /* feature gate CSIVolumeHealth */
    bool memory_tiers;        /* memoryReservationPolicy: TieredReservation */
    double memory_throttling; /* memoryThrottlingFactor */
};

struct api_count { /* an extended resource of the configuration */
    char *name;
    int64_t n; /* 0 and more */
};

struct api_counts { /* sorted by name, unique names */
    struct api_count *v;
    size_t n;
};
#endif
