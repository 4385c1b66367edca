# SPDX-License-Identifier: Apache-2.0
agent_cli_show_SRCS := describe.c describe_config.c describe_container.c describe_node.c describe_parts.c describe_placement.c describe_pod.c describe_volume.c \
                       events.c explain.c explain_fields.c get.c get_devices.c get_evictions.c get_images.c get_labels.c get_objects.c get_pods.c get_sort.c get_storage.c get_tables.c manifests.c top.c
