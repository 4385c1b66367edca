/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_change - the pod annotations that say how a running container follows its ConfigMaps and Secrets.
 *
 * coracle.dev/subpath: live - subPath mounts of such volumes follow changes, too; without it they stay as
 * they were when the container started (kubelet's rule).
 *
 * The pod annotation coracle.dev/on-config-change: what happens to a running container when a
 * ConfigMap or Secret that its environment came from changes.
 *
 *     ignore        nothing: the status says that the environment is older (the default)
 *     restart       it is ended with the pod's grace and started again with the new values
 *     signal=HUP    its first process gets the signal, once a change; names with or without SIG
 */
#ifndef AGENT_API_ON_CHANGE_H
#define AGENT_API_ON_CHANGE_H
#include <stdbool.h>

#define API_ON_CHANGE "coracle.dev/on-config-change"

enum api_on_change { API_ON_CHANGE_IGNORE, API_ON_CHANGE_RESTART, API_ON_CHANGE_SIGNAL };

/* `value`: the annotation's; NULL: there is none.  False: it is none of the above.  *ret_signal: "HUP", a
 * piece of the value; NULL where there is none. */
bool api_on_change_parse(const char *value, enum api_on_change *ret, const char **ret_signal);

#define API_SUB_PATH "coracle.dev/subpath"

/* Likewise: "live" alone is allowed. */
bool api_live_sub_path_parse(const char *value, bool *ret_live);
#endif
