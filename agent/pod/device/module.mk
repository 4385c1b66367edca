# SPDX-License-Identifier: Apache-2.0
agent_pod_device_SRCS := device_room.c
