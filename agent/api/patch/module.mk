# SPDX-License-Identifier: Apache-2.0
agent_api_patch_SRCS := go_base64.c go_text.c json_patch.c merge_patch.c strategic.c strategic_list.c strategic_order.c tree.c
