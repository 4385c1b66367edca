# SPDX-License-Identifier: Apache-2.0
agent_status_SRCS := server.c conn.c conn_send.c request.c request_options.c codes.c reply.c routes.c routes_node.c routes_images.c routes_objects.c select.c keys.c listing.c held.c reserve.c watch.c feed.c store_object.c progress.c logs.c exec.c exec_begin.c exec_input.c exec_upgrade.c cri_log.c log_files.c log_walk.c
