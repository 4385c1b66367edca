# SPDX-License-Identifier: Apache-2.0
agent_pod_volume_SRCS := csi_describe.c csi_grow.c csi_links.c csi_object.c csi_removal.c csi_resolve.c csi_show.c csi_tokens.c csi_usage.c csi_volumes.c \
                         live_sub_path.c payload.c payload_set.c pod_payloads.c pod_volumes.c pod_claims.c host_paths.c volume_removal.c storage_grow.c storage_removal.c storage_show.c storage_spec.c storage_usage.c storage_volumes.c tokens.c volume_cover.c \
                         volume_room.c
