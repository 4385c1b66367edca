/* SPDX-License-Identifier: Apache-2.0 */
/* ctr_limits - the settings of a container's cgroup, by kubelet's formulas (pkg/kubelet/kuberuntime/
 * kuberuntime_container_linux.go, pkg/kubelet/qos/policy.go). A container without a limit has its pod's
 * (spec.resources). Pure, except for the node's properties. Loop thread only. */
#ifndef AGENT_POD_LIMITS_CTR_LIMITS_H
#define AGENT_POD_LIMITS_CTR_LIMITS_H
#include "agent/pod/core/pod.h"

struct ctr_limits {
    int64_t cpu_shares;    /* from its request, otherwise its limit */
    int64_t cpu_period_us; /* the quota's period */
    int64_t cpu_quota_us;  /* -1: none */
    int64_t memory_max;    /* bytes; -1: none */
    /* The following on cgroup v2 only. Feature gate MemoryQoS; 0: none. */
    int64_t memory_min, memory_low, memory_high;
    int64_t swap_max; /* bytes, if swap is accounted */
    bool oom_group;   /* an OOM kill ends the whole container */
};

void ctr_limits_of(const struct ctr *c, struct ctr_limits *ret);
int resources_oom_score(const struct pod *p, const struct ctr *c);
/* Whether the pod's annotation coracle.dev/oom-kill is "pod". */
bool oom_kill_takes_pod(const struct pod *p);
/* It requests something this node cannot do: on cgroup v1 a kill ends one process. */
bool oom_kill_cannot(const struct pod *p);
#endif
