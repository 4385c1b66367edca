# SPDX-License-Identifier: Apache-2.0
agent_cli_template_SRCS := columns.c go_calls.c go_parse.c go_pipe.c go_printf.c go_run.c jsonpath.c jsonpath_path.c
