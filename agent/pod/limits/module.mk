# SPDX-License-Identifier: Apache-2.0
agent_pod_limits_SRCS := allocatable.c ctr_limits.c admission_fit.c hugepages.c priority.c resources.c cpu_memory.c
