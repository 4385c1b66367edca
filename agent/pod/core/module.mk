# SPDX-License-Identifier: Apache-2.0
agent_pod_core_SRCS := claim_link.c core_room.c driver_link.c events.c evict.c explain_step.c facts.c instance_why.c node_labels.c node_written.c node_written_file.c pod_look.c pod_starts.c record_field.c \
                       restart_rules.c rooms.c start_times.c state.c storage_place.c table.c upward.c usage_text.c wake.c
