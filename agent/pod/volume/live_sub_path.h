/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_sub_path - the pod annotation `coracle.dev/subpath: live`: subPath mounts of ConfigMap, Secret,
 * downward API and projected volumes follow their volume, whereas by kubelet's rule they stay unchanged. Each
 * file or folder is replaced as a whole (agent/runtime/live_mount.h), in a child, because that is another
 * namespace. Level-triggered: mounts are compared with the volume whenever a volume was published, a
 * container started, or the agent started. Failures are retried with a back-off of 200 ms, doubled up to 10
 * s, while the container runs; `coracle explain pod` shows the error. Loop thread only.
 */
#ifndef AGENT_POD_VOLUME_LIVE_SUB_PATH_H
#define AGENT_POD_VOLUME_LIVE_SUB_PATH_H
#include "agent/pod/volume/volumes.h"

void live_sub_path_step(struct pod *p); /* starts the comparisons that are due */
#endif
