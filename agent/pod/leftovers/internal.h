/* SPDX-License-Identifier: Apache-2.0 */
/* What leftovers keeps of the node for itself. */
#ifndef AGENT_POD_LEFTOVERS_INTERNAL_H
#define AGENT_POD_LEFTOVERS_INTERNAL_H
#include "agent/pod/core/pod.h"

struct leftovers_node {
    char *foreign; /* uids of pods that are not ours (foreign.h), a line each; NULL: not known yet */
    TAILQ_HEAD(, sweep_job) jobs;    /* sweep_job.c */
    struct mount_watch *mount_watch; /* NULL: no removal waits for a mount */
};

static inline struct leftovers_node *leftovers_node(const struct node *n)
{
    return n->parts[ROOM_LEFTOVERS];
}
#endif
