/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own data of the node and of a pod. */
#ifndef AGENT_POD_USAGE_INTERNAL_H
#define AGENT_POD_USAGE_INTERNAL_H
#include "agent/pod/core/pod.h"

struct usage_node {
    struct local_storage *local;                      /* local_storage.h; NULL: nothing was measured yet */
    struct oom *oom;                                  /* oom.h; NULL: kills are not watched */
    struct usage *usage;                              /* usage.h; NULL: no request yet */
    struct scrapes *scrapes;                          /* scrape.h; likewise */
    void (*growth)(struct node *n, const char *path); /* storage_usage.h */
    struct storage_measure *measure;                  /* likewise; NULL: no waiting request */
};

static inline struct usage_node *usage_node(const struct node *n)
{
    return n->parts[ROOM_USAGE];
}
struct usage_pod {
    struct local_pod *local;  /* local_storage.h; NULL: it has no limits */
    struct local_pod *others; /* its other trees, scanned when a disk runs short; NULL: never asked for */
};

static inline struct usage_pod *usage_of_pod(const struct pod *p)
{
    return p->parts[ROOM_USAGE];
}
#endif
