# SPDX-License-Identifier: Apache-2.0
agent_pod_eviction_SRCS := eviction_room.c memory_level.c observe.c watch.c
