# SPDX-License-Identifier: Apache-2.0
agent_pod_limits_SRCS := allocatable.c ctr_limits.c fit.c hugepages.c priority.c resources.c sizes.c
