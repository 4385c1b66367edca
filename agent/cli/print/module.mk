# SPDX-License-Identifier: Apache-2.0
agent_cli_print_SRCS := colour.c errors.c order.c output.c table.c values.c
