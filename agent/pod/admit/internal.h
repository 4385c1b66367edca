/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own data of the node and of a pod. */
#ifndef AGENT_POD_ADMIT_INTERNAL_H
#define AGENT_POD_ADMIT_INTERNAL_H
#include "agent/pod/core/pod.h"

struct admit_node {
    struct hugepages_watch *hugepages_watch; /* NULL: this kernel has none */
};

static inline struct admit_node *admit_node(const struct node *n)
{
    return n->parts[ROOM_ADMIT];
}

struct admit_pod_part {
    struct cpu_memory sizes;     /* the last limits of the pod's cgroup */
    struct {                     /* resize.c */
        struct api_pod *desired; /* the manifest, while its resources cannot be had; NULL */
        bool under_way, infeasible;
        int64_t since_ns, pending_ns; /* wall clock */
        struct boot_time pending_at;
        char *pending, *error; /* the reason for the wait; the last error; NULL: none */
    } resize;
};

static inline struct admit_pod_part *admit_of(const struct pod *p)
{
    return p->parts[ROOM_ADMIT];
}
#endif
