/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli - the command line clients of the status socket, and what works without a daemon.
 *
 * commands.c lists them; `coracle help` and coracle(1) are made of that list.
 *
 * Output follows kubectl.  Exit codes: exits.c has the table.
 * Synchronous; takes no locks and keeps no state; main() calls it for every command but `run`.  A reader of
 * standard output that goes away ends it quietly.
 */
#ifndef AGENT_CLI_CLI_H
#define AGENT_CLI_CLI_H

#define CLI_SOCKET "/run/coracle/coracle.sock" /* unless --socket or CORACLE_SOCKET names another */

int cli_main(int argc, char **argv); /* as main() got them */
#endif
