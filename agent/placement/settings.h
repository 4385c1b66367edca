/* SPDX-License-Identifier: Apache-2.0 */
/* settings - the configuration of processors, memory and topology, with kubelet's names. */
#ifndef AGENT_PLACEMENT_SETTINGS_H
#define AGENT_PLACEMENT_SETTINGS_H
#include "agent/placement/options.h"
#include "agent/placement/reserve.h"

#define PL_OPTIONS_MAX 16   /* names of one policy: more than kubelet has */
#define PL_RESERVED_MAX 128 /* entries of reservedMemory, one for each node and type */

struct pl_settings { /* texts are borrowed from the configuration */
    bool cpu_static; /* cpuManagerPolicy: static */
    bool isolates;   /* isolateExclusiveCPUs: the kernel leaves a container's own processors to it alone */
    bool alpha;      /* the feature gate CPUManagerPolicyAlphaOptions */
    struct pl_option cpu_options[PL_OPTIONS_MAX];
    size_t n_cpu_options;
    const char *reserved_cpus; /* reservedSystemCPUs; "" or NULL: by number */
    bool memory_static;        /* memoryManagerPolicy: Static */
    struct pl_reservation reserved[PL_RESERVED_MAX];
    size_t n_reserved;
    const char *topology_policy, *topology_scope;
    struct pl_option topology_options[PL_OPTIONS_MAX];
    size_t n_topology_options;
};
#endif
