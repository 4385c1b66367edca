/* SPDX-License-Identifier: Apache-2.0 */
/* daemon - `coracle run`: opens the parts in order, runs the loop, closes them in reverse order. */
#ifndef AGENT_DAEMON_H
#define AGENT_DAEMON_H

int daemon_main(int argc, char **argv); /* argv[0] is "run"; returns the exit code */
#endif
