# SPDX-License-Identifier: Apache-2.0
agent_api_patch_SRCS := apply.c bare.c conflicts.c decode.c defaults.c fields.c go_text.c json_patch.c kinds.c kinds_apps.c kinds_batch.c kinds_node.c \
                         kinds_pod.c kinds_service.c kinds_storage.c managed.c merge_patch.c references.c strategic.c \
                         strategic_list.c strategic_order.c tree.c typed.c typed_compare.c typed_merge.c update.c update_resize.c update_rules.c work.c write.c
