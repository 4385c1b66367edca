/* SPDX-License-Identifier: Apache-2.0 */
/* handlers - the OCI runtimes that pods can choose by a RuntimeClass: the configured ones, and crun and runc
 * if installed. Blocking: before the loop runs. */
#ifndef AGENT_HANDLERS_H
#define AGENT_HANDLERS_H
#include "agent/config/config.h"
#include "agent/preflight.h"
#include "agent/runtime/container.h"

struct handlers { /* texts are borrowed from the configuration, or stored in the struct */
    struct rt_handler_option v[RT_HANDLERS_MAX];
    size_t n;
    const char *options[RT_HANDLERS_MAX][RT_HANDLER_OPTIONS_MAX + 1];
    char found[2][PREFLIGHT_PATH_SIZE]; /* crun, runc */
};

/* A runtime whose program is missing is left out with a warning: its pods wait, other pods are not affected.
 */
void handlers_find(struct handlers *ret, const struct agent_config *c);
#endif
