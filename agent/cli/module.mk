# SPDX-License-Identifier: Apache-2.0
agent_cli_SRCS := cli.c exits.c commands.c args.c help.c complete.c completion.c client.c values.c jsonpath.c table.c colour.c pods.c manifests.c hints.c restart.c delete.c watch.c wait.c events.c kinds.c get.c get_objects.c get_tables.c describe.c describe_parts.c describe_pod.c describe_node.c describe_config.c describe_container.c \
                  describe_volume.c logs.c log_streams.c exec.c exec_stream.c attach.c port_forward.c cp.c explain.c top.c validate.c version.c image.c image_bring.c image_care.c image_spool.c get_sort.c config.c
