/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_change - pod annotations that define how a running container follows changes of its ConfigMaps and
 * Secrets.
 *
 * coracle.dev/subpath: live - subPath mounts of such volumes follow changes, too; by default they stay as
 * they were when the container started (kubelet's rule).
 *
 * coracle.dev/on-config-change defines what happens to a running container when a ConfigMap or Secret used in
 * its environment changes.
 *
 *     ignore        nothing: the status says that the environment is outdated (the default)
 *     restart       the container is ended with the pod's grace period and started with the new values
 *     signal=HUP    its first process gets the signal, once per change; names with or without SIG
 */
#ifndef AGENT_API_ON_CHANGE_H
#define AGENT_API_ON_CHANGE_H
#include <stdbool.h>

#define API_ON_CHANGE "coracle.dev/on-config-change"

enum api_on_change { API_ON_CHANGE_IGNORE, API_ON_CHANGE_RESTART, API_ON_CHANGE_SIGNAL };

/* `value`: the annotation's, or NULL. False if invalid. *ret_signal: "HUP", pointing into the value, or
 * NULL. */
bool api_on_change_parse(const char *value, enum api_on_change *ret, const char **ret_signal);

#define API_SUB_PATH "coracle.dev/subpath"

/* The same; the only valid value is "live". */
bool api_live_sub_path_parse(const char *value, bool *ret_live);
#endif
