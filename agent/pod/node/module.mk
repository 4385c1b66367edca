# SPDX-License-Identifier: Apache-2.0
agent_pod_node_SRCS := node.c record_load.c record_read.c rooms.c
