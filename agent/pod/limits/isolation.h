/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolation - the setting isolateExclusiveCPUs: makes a container with exclusive processors an isolated
 * partition (cgroups/partition.h) as long as it runs. agent/placement/isolate.h computes the writes.
 *
 * A partition is created between the create of a container and its start. All partitions are checked again
 * whenever such a container starts or ends, and every ten seconds, because a processor that went offline may
 * have ended one. If the kernel does not grant a partition, the container runs on its processors without one,
 * and its pod gets a warning. Loop thread only.
 */
#ifndef AGENT_POD_LIMITS_ISOLATION_H
#define AGENT_POD_LIMITS_ISOLATION_H
#include "agent/pod/core/pod.h"

/* After placement_begin(). Without the setting, what an earlier run left is taken back. */
void isolation_begin(struct node *n);

enum isolation {
    ISOLATION_NONE, /* without the setting, without exclusive processors, or not running */
    ISOLATION_DONE,
    ISOLATION_FAILED, /* ret_why, which is valid until the next check */
};
enum isolation isolation_of(const struct ctr *c, const char **ret_why);

/* For `coracle explain`. */
void isolation_explain(const struct pod *p, json_t *steps);
void isolation_explain_node(const struct node *n, json_t *steps);
#endif
