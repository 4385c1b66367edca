/* SPDX-License-Identifier: Apache-2.0 */
/* change - the commands that change objects of a standalone node: delete, label, annotate, edit, scale,
 * rollout and set. The daemon writes the files of the manifest folder. */
#ifndef AGENT_CLI_CHANGE_CHANGE_H
#define AGENT_CLI_CHANGE_CHANGE_H
#include "agent/cli/command/command.h"

extern const struct cli_command command_delete, command_label, command_annotate, command_edit, command_scale,
    command_rollout, command_set;
#endif
