# SPDX-License-Identifier: Apache-2.0
agent_api_patch_write_SRCS := bare.c decode.c default_service.c defaults.c options.c references.c update_resize.c update_rules.c write.c
