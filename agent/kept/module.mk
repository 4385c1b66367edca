# SPDX-License-Identifier: Apache-2.0
agent_kept_SRCS := batch.c kept.c kept_file.c kept_key.c kept_load.c kept_save.c
