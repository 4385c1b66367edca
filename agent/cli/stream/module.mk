# SPDX-License-Identifier: Apache-2.0
agent_cli_stream_SRCS := attach.c debug.c debug_node.c cp.c exec.c exec_stream.c log_streams.c logs.c port_forward.c
