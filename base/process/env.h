/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env - the environment of a plugin: the agent's own, which administrators set in the unit's file
 * (AWS_PROFILE, HTTPS_PROXY), then the variables of the plugin's configuration. Pure.
 */
#ifndef BASE_PROCESS_ENV_H
#define BASE_PROCESS_ENV_H
#include "base/strs.h"

/* Appends all pairs except the variables that systemd sets for the daemon itself (NOTIFY_SOCKET, WATCHDOG_*,
 * LISTEN_*, JOURNAL_STREAM...). `environment`: NULL-terminated; may be NULL. False when out of memory. */
bool proc_env_inherit(struct strs *env, const char *const *environment);
/* Takes `pair` ("NAME=value", malloc'ed); an existing pair of the same name is replaced. False for NULL and
 * when out of memory. */
bool proc_env_put(struct strs *env, char *pair);
#endif
