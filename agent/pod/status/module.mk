# SPDX-License-Identifier: Apache-2.0
agent_pod_status_SRCS := ctr_status.c pod_conditions.c pod_status.c status_room.c
