/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom_kill - the pod annotation coracle.dev/oom-kill defines what an out-of-memory kill ends (cgroup v2 only;
 * on v1 always one process).
 *
 *     process     the process chosen by the kernel
 *     container   its whole container: kubelet's default, unless singleProcessOOMKill is true
 *     pod         the same; and if the pod's limit was reached, all containers of the pod
 */
#ifndef AGENT_API_OOM_KILL_H
#define AGENT_API_OOM_KILL_H
#include <stdbool.h>

#define API_OOM_KILL "coracle.dev/oom-kill"

enum api_oom_kill { API_OOM_KILL_UNSET, API_OOM_KILL_PROCESS, API_OOM_KILL_CONTAINER, API_OOM_KILL_POD };

/* `value`: the annotation's, or NULL. False if invalid. */
bool api_oom_kill_parse(const char *value, enum api_oom_kill *ret);
#endif
