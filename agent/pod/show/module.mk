# SPDX-License-Identifier: Apache-2.0
agent_pod_show_SRCS := agent_metrics.c device_metrics.c devices.c explain.c explain_devices.c explain_node.c explain_why.c network_metrics.c node_events.c node_machine.c node_object.c object_json.c placement_metrics.c placements.c \
                       provider.c provider_exec.c provider_images.c provider_objects.c podresources.c show_room.c write.c write_audit.c write_file.c write_held.c write_mark.c write_node.c
