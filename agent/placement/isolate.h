/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate - computes the writes to cgroup files, in their order, that make exactly the containers with
 * exclusive processors isolated partitions. Pure: the input is the present state of the cgroups, the output a
 * list of writes, which cgroups/partition.h performs.
 *
 * A processor must be in cpuset.cpus.exclusive from below the root down to the container. Other software also
 * uses these files above the cgroup of all pods, so a write there keeps foreign processors. The agent's
 * processors are those in the file of the cgroup of all pods. That file is extended before the files above
 * it, and reduced after them, so that the next plan recognizes all of the agent's processors, at whatever
 * write of a plan the agent was killed.
 *
 * No write of a plan takes a processor from a partition that stays as it is.
 */
#ifndef AGENT_PLACEMENT_ISOLATE_H
#define AGENT_PLACEMENT_ISOLATE_H
#include "agent/placement/cpus.h"

#include <stddef.h>

enum pl_iso_level { PL_ISO_ABOVE, PL_ISO_ALL, PL_ISO_POD, PL_ISO_CONTAINER };

struct pl_iso_cgroup {
    enum pl_iso_level level;
    struct cpus exclusive; /* as it is */
    bool partition;        /* as it is: not "member", even if it is invalid */
    bool isolated;         /* as it is: and the kernel grants it */
    struct cpus want;      /* of a container: its own processors; empty: it is no partition */
};

enum pl_iso_file { PL_ISO_EXCLUSIVE, PL_ISO_PARTITION };

struct pl_iso_write {
    size_t cgroup; /* which one, of those given */
    enum pl_iso_file file;
    struct cpus cpus; /* of PL_ISO_EXCLUSIVE; empty: none */
    bool isolated;    /* of PL_ISO_PARTITION; false: "member" */
};

/* No plan for n cgroups has more writes. */
#define PL_ISO_WRITES(n) (4 * (n) + 2)

/* The processors of all wants. */
struct cpus pl_isolated(const struct pl_iso_cgroup *v, size_t n);
/*
 * `v` begins with the cgroups above that of all pods, from the top; then come that one, and each pod with its
 * containers after it. *ret has room for PL_ISO_WRITES(n). Returns their number; 0: the state is as desired.
 * A partition that the kernel does not grant is requested again each time.
 */
size_t pl_isolate(const struct pl_iso_cgroup *v, size_t n, struct pl_iso_write *ret);
#endif
