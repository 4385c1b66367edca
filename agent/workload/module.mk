# SPDX-License-Identifier: Apache-2.0
agent_workload_SRCS := adopt.c decide.c show.c workloads.c
