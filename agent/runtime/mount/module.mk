# SPDX-License-Identifier: Apache-2.0
agent_runtime_mount_SRCS := device_nodes.c idmap.c idmap_probe.c image_mount.c overlay.c
