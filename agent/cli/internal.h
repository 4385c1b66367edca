/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal - declarations shared by agent/cli: the table of commands and what is made from it, and the
 * commands outside the sub-folders.
 */
#ifndef AGENT_CLI_INTERNAL_H
#define AGENT_CLI_INTERNAL_H
#include "agent/cli/cli.h"
#include "agent/cli/client/client.h"
#include "agent/cli/command/command.h"
#include "agent/cli/print/print.h"

/* ---- cli.c ---- */
int cli_run(struct cli *cli, int argc, char **argv); /* one call, with main()'s arguments; the exit code */

/* ---- commands.c ---- */
extern const struct cli_command *const cli_commands[]; /* NULL-terminated, in the order of the help */
const struct cli_command *cli_command_find(const char *name);

/* ---- help.c ---- */
void help_overview(struct buf *out);

/* ---- unknown.c ---- */
int cli_unknown_command(struct cli *cli, const char *name); /* with a suggestion; EXIT_USAGE */

/* ---- a file each ---- */
extern const struct cli_command command_run, command_validate, command_config, command_version,
    command_restart, command_delete, command_wait, command_help, command_completion, command_complete;
#endif
