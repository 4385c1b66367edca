/* SPDX-License-Identifier: Apache-2.0 */
/* handlers - the OCI runtimes that pods can choose by a RuntimeClass: those of the configuration, and crun
 * and runc where they are installed. Blocking: before the loop runs. */
#ifndef AGENT_HANDLERS_H
#define AGENT_HANDLERS_H
#include "agent/config/config.h"
#include "agent/preflight.h"
#include "agent/runtime/container.h"

struct handlers { /* texts are borrowed from the configuration, or in the struct */
    struct rt_handler_option v[RT_HANDLERS_MAX];
    size_t n;
    const char *options[RT_HANDLERS_MAX][RT_HANDLER_OPTIONS_MAX + 1];
    char found[2][PREFLIGHT_PATH_SIZE]; /* crun, runc */
};

/* One whose program is missing is left out, with a warning: its pods wait, and others are not affected. */
void handlers_find(struct handlers *ret, const struct agent_config *c);
#endif
