/* SPDX-License-Identifier: Apache-2.0 */
/* stream - the commands that pass bytes between a container and the user: exec, attach, logs, cp and
 * port-forward. */
#ifndef AGENT_CLI_STREAM_STREAM_H
#define AGENT_CLI_STREAM_STREAM_H
#include "agent/cli/command/command.h"

extern const struct cli_command command_exec, command_attach, command_debug, command_logs, command_cp,
    command_port_forward;
#endif
