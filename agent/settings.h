/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings - what `coracle run` does with its configuration besides opening its parts with it: the log,
 * warnings, refusing a node that the configuration forbids, and reading it anew at SIGHUP.  Main thread only.
 */
#ifndef AGENT_SETTINGS_H
#define AGENT_SETTINGS_H
#include "agent/config/config.h"

void settings_init_log(const struct agent_config *c);
void settings_warn(const struct agent_config *c); /* a line for each setting that is not acted on */
/* ERR_PRECONDITION: failSwapOn was asked for, and swap is on. */
enum err_code settings_check_swap(const struct agent_config *c, struct err *e) MUST_CHECK;
/*
 * Reads the files of the command line again and takes over what may change; says what did and what needs a
 * restart. False: something is wrong with them, *c is as it was, and that was said.  Blocking: small files of
 * root's.
 */
bool settings_reload(struct agent_config *c, int argc, char **argv);
#endif
