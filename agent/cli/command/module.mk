# SPDX-License-Identifier: Apache-2.0
agent_cli_command_SRCS := args.c usage.c
