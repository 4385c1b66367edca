/* SPDX-License-Identifier: Apache-2.0 */
/* settings - uses of the configuration by `coracle run` except for opening the parts: the log, warnings, the
 * refusal of a node that the configuration forbids, and reloads on SIGHUP. Main thread only. */
#ifndef AGENT_SETTINGS_H
#define AGENT_SETTINGS_H
#include "agent/config/config.h"

void settings_init_log(const struct agent_config *c);
void settings_warn(const struct agent_config *c); /* one line per setting without effect */
/* ERR_PRECONDITION: failSwapOn is set explicitly, and swap is on. */
enum err_code settings_check_swap(const struct agent_config *c, struct err *e) MUST_CHECK;
/* Reads the files of the command line again and applies the settings that may change; logs them and those
 * that need a restart. False: an error, which was logged; *c is unchanged. Blocking: small files of root. */
bool settings_reload(struct agent_config *c, int argc, char **argv);
#endif
