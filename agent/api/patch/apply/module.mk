# SPDX-License-Identifier: Apache-2.0
agent_api_patch_apply_SRCS := apply.c conflicts.c fields.c managed.c typed.c typed_compare.c typed_merge.c update.c work.c
