/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolation - the setting isolateExclusiveCPUs: a container with processors of its own is an isolated
 * partition (cgroups/partition.h) as long as it runs. Which files are written is decided in
 * agent/placement/isolate.h.
 *
 * A partition is made between the create of a container and its start. It is looked at again whenever such a
 * container comes or goes, and every ten seconds, because a processor that went offline may have ended it. If
 * the kernel does not grant it, the container runs on its processors without: its pod gets a warning. Loop
 * thread only.
 */
#ifndef AGENT_POD_LIMITS_ISOLATION_H
#define AGENT_POD_LIMITS_ISOLATION_H
#include "agent/pod/core/pod.h"

/* After placement_begin(). Without the setting, what an earlier run left is taken back. */
void isolation_begin(struct node *n);

enum isolation {
    ISOLATION_NONE, /* without the setting, without processors of its own, or not running */
    ISOLATION_DONE,
    ISOLATION_FAILED, /* *ret_why, which lives until the next look */
};
enum isolation isolation_of(const struct ctr *c, const char **ret_why);

/* For `coracle explain`. */
void isolation_explain(const struct pod *p, json_t *steps);
void isolation_explain_node(const struct node *n, json_t *steps);
#endif
