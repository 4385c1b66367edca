/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom_kill - the pod annotation coracle.dev/oom-kill: what an out of memory kill takes (cgroup v2 only; on v1
 * it is always one process).
 *
 *     process     the process that the kernel chose
 *     container   all of its container: kubelet's default, unless singleProcessOOMKill says otherwise
 *     pod         the same; and where it is the pod's limit that was met, all containers of the pod
 */
#ifndef AGENT_API_OOM_KILL_H
#define AGENT_API_OOM_KILL_H
#include <stdbool.h>

#define API_OOM_KILL "coracle.dev/oom-kill"

enum api_oom_kill { API_OOM_KILL_UNSET, API_OOM_KILL_PROCESS, API_OOM_KILL_CONTAINER, API_OOM_KILL_POD };

/* `value`: the annotation's; NULL: there is none.  False: it is none of the above. */
bool api_oom_kill_parse(const char *value, enum api_oom_kill *ret);
#endif
