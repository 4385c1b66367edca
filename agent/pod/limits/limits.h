/* SPDX-License-Identifier: Apache-2.0 */
/* limits - what pods may use: requests, limits, priorities, and their cgroups. Loop thread only. */
#ifndef AGENT_POD_LIMITS_LIMITS_H
#define AGENT_POD_LIMITS_LIMITS_H
#include "agent/pod/core/pod.h"

extern const struct room limits_room;

int32_t pods_priority(const struct node *n, const struct api_pod *api);
/* False: its class is neither built into Kubernetes nor defined by a manifest yet; this is reported. */
bool priority_step(struct pod *p);
/* Creates or updates it. `keep`: while its containers shrink, no limit becomes narrower than this. */
enum err_code resources_pod_cgroup(struct pod *p, const struct cpu_memory *keep, struct err *e) MUST_CHECK;
/* The cgroups of the classes and of all pods, from the sums of their pods. */
void resources_qos_update(struct node *n);
enum err_code resources_cgroup_path(const struct pod *p, char *ret, size_t size, struct err *e) MUST_CHECK;
/* By kubelet's max rule; the pod's own (spec.resources) and its overhead are only included in the latter
 * two. */
struct quantity resources_containers_request(const struct api_pod *p, const char *resource);
struct quantity resources_pod_request(const struct api_pod *p, const char *resource);
struct quantity resources_pod_limit(const struct api_pod *p, const char *resource, bool *ret_all_declare);
/* No limit becomes narrower than `keep`, if that is known. */
void resources_widen(const struct cpu_memory *keep, struct cg_limits *l);
#endif
