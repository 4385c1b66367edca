/* SPDX-License-Identifier: Apache-2.0 */
/* What usage keeps of the node and of a pod for itself. */
#ifndef AGENT_POD_USAGE_INTERNAL_H
#define AGENT_POD_USAGE_INTERNAL_H
#include "agent/pod/core/pod.h"

struct usage_node {
    struct local_storage *local; /* local_storage.h; NULL: nothing was measured yet */
    struct oom *oom;             /* oom.h; NULL: kills are not watched */
    struct usage *usage;         /* usage.h; NULL: nobody has asked yet */
    struct scrapes *scrapes;     /* scrape.h; likewise */
};

static inline struct usage_node *usage_node(const struct node *n)
{
    return n->parts[ROOM_USAGE];
}
struct usage_pod {
    struct local_pod *local; /* local_storage.h; NULL: what it writes is not measured */
};

static inline struct usage_pod *usage_of_pod(const struct pod *p)
{
    return p->parts[ROOM_USAGE];
}
#endif
