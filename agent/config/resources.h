/*
 * resources - the settings about the node's own cpu, memory, swap and process ids as numbers: what is kept
 * from pods, whose limits are written, how memory is protected.  Plain values, copied freely.  Sources:
 * kubelet's KubeletConfiguration and pkg/kubelet/cm/node_container_manager_linux.go.
 */
#ifndef AGENT_CONFIG_RESOURCES_H
#define AGENT_CONFIG_RESOURCES_H
#include <stdbool.h>
#include <stdint.h>

struct config_reserved { /* systemReserved or kubeReserved; 0: nothing */
    int64_t cpu_milli, memory_bytes, storage_bytes, pids;
};

struct config_threshold { /* of evictionHard; both 0: none */
    int64_t bytes;
    double share; /* of the capacity, 0 to 1; counts where bytes is 0 */
};

enum config_enforce { /* bits: enforceNodeAllocatable */
                      CONFIG_ENFORCE_PODS = 1 << 0,
                      CONFIG_ENFORCE_SYSTEM = 1 << 1,
                      CONFIG_ENFORCE_SYSTEM_CPU = 1 << 2, /* system-reserved-compressible */
                      CONFIG_ENFORCE_KUBE = 1 << 3,
                      CONFIG_ENFORCE_KUBE_CPU = 1 << 4,
};

struct config_resources {
    struct config_reserved system, kube; /* reservedSystemCPUs is in system, instead of both's cpu */
    struct config_threshold evict_memory, evict_storage; /* memory.available, nodefs.available */
    unsigned enforce;
    bool limited_swap;       /* memorySwap.swapBehavior: LimitedSwap */
    bool single_process_oom; /* an OOM kill takes one process; kubelet's default on v2: the whole container */
    bool memory_qos;         /* feature gate MemoryQoS */
    bool memory_tiers;       /* memoryReservationPolicy: TieredReservation */
    double memory_throttling; /* memoryThrottlingFactor */
};
#endif
