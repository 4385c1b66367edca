# SPDX-License-Identifier: Apache-2.0
agent_pod_limits_SRCS := admission_fit.c allocatable.c cpu_memory.c cpusets.c ctr_limits.c hugepages.c isolation.c isolation_tree.c limits_room.c \
                         priority.c resources.c
