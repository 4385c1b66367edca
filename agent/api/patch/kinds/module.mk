# SPDX-License-Identifier: Apache-2.0
agent_api_patch_kinds_SRCS := apps.c batch.c kinds.c node.c pod.c service.c storage.c
