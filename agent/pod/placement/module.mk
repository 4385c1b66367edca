# SPDX-License-Identifier: Apache-2.0
agent_pod_placement_SRCS := placement_room.c wants.c place.c state_files.c
