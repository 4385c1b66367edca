# SPDX-License-Identifier: Apache-2.0
agent_kube_decide_SRCS := claim_resize.c csi_node.c event_correlate.c event_lru.c mirror.c node_merge.c patch.c pod_decide.c pod_merge.c seen.c x509.c
