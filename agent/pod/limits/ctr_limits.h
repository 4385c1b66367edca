/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctr_limits - what one container's cgroup gets, by kubelet's formulas (pkg/kubelet/kuberuntime/
 * kuberuntime_container_linux.go, pkg/kubelet/qos/policy.go).  A container without a limit has its pod's
 * (spec.resources).  Pure but for what the node has.  Loop thread only.
 */
#ifndef AGENT_POD_LIMITS_CTR_LIMITS_H
#define AGENT_POD_LIMITS_CTR_LIMITS_H
#include "agent/pod/core/pod.h"

struct ctr_limits {
    int64_t cpu_shares;    /* of its request, else of its limit */
    int64_t cpu_period_us; /* that the quota counts in */
    int64_t cpu_quota_us;  /* -1: none */
    int64_t memory_max;    /* bytes; -1: none */
    /* The following on cgroup v2 only. Feature gate MemoryQoS; 0: none. */
    int64_t memory_min, memory_low, memory_high;
    int64_t swap_max; /* bytes, where swap is counted */
    bool oom_group;   /* an OOM kill takes the whole container */
};

void ctr_limits_of(const struct ctr *c, struct ctr_limits *ret);
int resources_oom_score(const struct pod *p, const struct ctr *c);
/* The pod's annotation coracle.dev/oom-kill says "pod". */
bool oom_kill_takes_pod(const struct pod *p);
/* It asks for what this node cannot do: on cgroup v1 a kill takes one process. */
bool oom_kill_cannot(const struct pod *p);
#endif
