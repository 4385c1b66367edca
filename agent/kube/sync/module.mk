# SPDX-License-Identifier: Apache-2.0
agent_kube_sync_SRCS := sync.c wait.c call.c state.c seen.c patch.c node.c node_merge.c lease.c csi_node.c csi_part.c claim_resize.c claims.c pods.c pod_table.c pod_writer.c pod_decide.c \
                        pod_merge.c mirror.c events.c event_correlate.c event_lru.c objects.c followed.c tokens.c certs.c cert_line.c x509.c
