/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_nodes - device nodes of a pod with hostUsers: false. A runtime cannot create nodes in a user
 * namespace; it binds the host's, at the same path only, and they belong to users outside the pod. So
 * separate nodes are created here, on a tmpfs outside the user namespace (the kernel refuses to open nodes on
 * a tmpfs inside), and bound. Their owners are the pod's: the host's group 44 is the pod's group 44. For a
 * child process.
 */
#ifndef AGENT_RUNTIME_MOUNT_DEVICE_NODES_H
#define AGENT_RUNTIME_MOUNT_DEVICE_NODES_H
#include "agent/runtime/spec/spec.h"
#include "base/arena.h"

/* Creates the nodes of devices and edits in <folder>/dev; *ret is the config with mounts of them, its list in
 * the arena. The folder must exist. After an error it may contain mounts. */
enum err_code device_nodes_make(const struct rt_config *c, int rootfs_fd, const char *folder,
                                struct arena *arena, struct rt_config *ret, struct err *e) MUST_CHECK;
#endif
