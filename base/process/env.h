/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env - the environment of a plugin that administrators configure by ours (AWS_PROFILE, HTTPS_PROXY in the
 * unit's file): ours, then what the plugin's configuration adds. Pure.
 */
#ifndef BASE_PROCESS_ENV_H
#define BASE_PROCESS_ENV_H
#include "base/strs.h"

/* Appends all pairs but the variables by which systemd speaks with the daemon (NOTIFY_SOCKET, WATCHDOG_*,
 * LISTEN_*, JOURNAL_STREAM...): a plugin has no part in that. `environment`: NULL-terminated; may be NULL.
 * False when out of memory. */
bool proc_env_inherit(struct strs *env, const char *const *environment);
/* Takes `pair` ("NAME=value", malloc'ed); one of the same name is replaced. False for NULL and when out of
 * memory. */
bool proc_env_put(struct strs *env, char *pair);
#endif
