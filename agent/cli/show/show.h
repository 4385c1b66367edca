/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show - the commands that show the state: get, describe, events, explain and top. Their columns are those of
 * kubectl.
 */
#ifndef AGENT_CLI_SHOW_SHOW_H
#define AGENT_CLI_SHOW_SHOW_H
#include "agent/cli/command/command.h"

extern const struct cli_command command_get, command_describe, command_events, command_explain, command_top;

/* `get images`, and `image ls` and `image inspect`: prints these, or all without names; the exit code. */
int cli_list_images(struct cli *cli, const char *format, bool no_headers, char **names, int n_names);
#endif
