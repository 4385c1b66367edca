/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli - the command line clients of the status socket, and commands that work without a daemon.
 *
 * commands.c lists them; `coracle help` and coracle(1) are made from that list.
 *
 * Output follows kubectl. command/usage.c has the exit codes. Synchronous, without locks or state; main()
 * calls it for every command except `run`. The program ends quietly when nothing reads standard output any
 * more.
 */
#ifndef AGENT_CLI_CLI_H
#define AGENT_CLI_CLI_H

int cli_main(int argc, char **argv); /* with main()'s arguments */
#endif
