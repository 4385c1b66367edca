/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sizes - cpu and memory of a container or a pod as plain numbers (struct sizes): what a manifest says, what
 * a cgroup was given.  Cpu in thousandths, memory in bytes; -1: not given, as a limit none.  Pure.
 */
#ifndef AGENT_POD_LIMITS_SIZES_H
#define AGENT_POD_LIMITS_SIZES_H
#include "agent/pod/core/pod.h"

/* As its cgroup has them: where it has no limit of its own the pod's (spec.resources) holds. */
struct sizes sizes_of_container(const struct ctr *c);
/* Sums; a limit only where all containers have one, as the pod's cgroup has it. */
struct sizes sizes_of_pod(const struct api_pod *api);
bool sizes_same(const struct sizes *a, const struct sizes *b); /* unknown ones are never the same */

/* Of each what is more; for limits none is more than any. */
struct sizes sizes_widest(const struct sizes *a, const struct sizes *b);
int64_t sizes_wider(int64_t limit_a, int64_t limit_b);
bool sizes_shrink(int64_t from_limit, int64_t to_limit);

int64_t sizes_amount(const struct api_resource_list *l, const char *name); /* "cpu" or "memory" */
#endif
