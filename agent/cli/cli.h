/*
 * cli - the command line clients of the status socket, and what works without a daemon.
 *
 *     coracle get pods|manifests|images|events      coracle logs [-f] POD       coracle validate FILE...
 *     coracle describe pod NAME                     coracle explain pod NAME    coracle image
 * import|pull|ls|rm coracle version
 *
 * Output and exit codes follow kubectl: 0 done, 1 an error (one line on standard error), 2 wrong usage.
 * Synchronous; takes no locks and keeps no state; main() calls it for every command but `run`.  A reader of
 * standard output that goes away ends it quietly.
 */
#ifndef AGENT_CLI_CLI_H
#define AGENT_CLI_CLI_H

#define CLI_SOCKET "/run/coracle/coracle.sock" /* unless --socket or CORACLE_SOCKET names another */

int cli_main(int argc, char **argv); /* as main() got them */
#endif
