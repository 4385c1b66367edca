# SPDX-License-Identifier: Apache-2.0
agent_kube_sync_SRCS := sync.c wait.c call.c state.c node.c lease.c csi_part.c claims.c pods.c pod_table.c pod_writer.c events.c objects.c followed.c tokens.c certs.c \
                        cert_line.c
