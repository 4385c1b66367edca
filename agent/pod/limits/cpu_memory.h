/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_memory - cpu and memory of a container or a pod as plain numbers (struct cpu_memory): as in a manifest
 * or a cgroup. Cpu in thousandths, memory in bytes; -1: not given, or no limit. Pure. */
#ifndef AGENT_POD_LIMITS_CPU_MEMORY_H
#define AGENT_POD_LIMITS_CPU_MEMORY_H
#include "agent/pod/core/pod.h"

/* As for its cgroup: without its own limit, the pod's (spec.resources) applies. */
struct cpu_memory cpu_memory_of_container(const struct ctr *c);
/* Sums; a limit only if all containers have one, as for the pod's cgroup. */
struct cpu_memory cpu_memory_of_pod(const struct api_pod *api);
bool cpu_memory_same(const struct cpu_memory *a,
                     const struct cpu_memory *b); /* unknown ones are never the same */

/* The larger of each; no limit is larger than any. */
struct cpu_memory cpu_memory_widest(const struct cpu_memory *a, const struct cpu_memory *b);
int64_t cpu_memory_wider(int64_t limit_a, int64_t limit_b);
bool cpu_memory_shrink(int64_t from_limit, int64_t to_limit);

/* In a pod's record: its member "sizes"; nothing while they are not known. */
void cpu_memory_save(const struct cpu_memory *s, json_t *record);
void cpu_memory_load(struct cpu_memory *s, const json_t *record);

int64_t cpu_memory_amount(const struct api_resource_list *l, const char *name); /* "cpu" or "memory" */
#endif
