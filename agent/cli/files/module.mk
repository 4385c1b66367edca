# SPDX-License-Identifier: Apache-2.0
agent_cli_files_SRCS := files.c
