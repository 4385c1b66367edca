# SPDX-License-Identifier: Apache-2.0
agent_cluster_SRCS := anchors.c bound.c claim_state.c cluster.c csi_drivers.c keep.c needs.c objects.c own_node.c process.c reports.c runtime_classes.c send.c services.c show.c storage.c \
                      tokens.c trust_bundles.c
