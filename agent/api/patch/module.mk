# SPDX-License-Identifier: Apache-2.0
agent_api_patch_SRCS := json_patch.c merge_patch.c status.c tree.c
