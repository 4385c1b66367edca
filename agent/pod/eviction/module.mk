# SPDX-License-Identifier: Apache-2.0
agent_pod_eviction_SRCS := act.c conditions.c decisions.c disks.c eviction_show.c figures.c forks.c memory_level.c observe.c patience.c reclaim.c releasing.c room.c watch.c
