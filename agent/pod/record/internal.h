/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own data of the node and of a pod. */
#ifndef AGENT_POD_RECORD_INTERNAL_H
#define AGENT_POD_RECORD_INTERNAL_H
#include "agent/pod/core/pod.h"

struct record_node {
    TAILQ_HEAD(, pod_record) unsynced; /* whose newest record is not in a batch yet */
    bool syncing;
    bool due; /* those that may wait have waited */
    uv_timer_t timer;
};

static inline struct record_node *record_node(const struct node *n)
{
    return n->parts[ROOM_RECORD];
}
struct pod_record {
    struct pod *pod;
    bool unsynced;   /* the newest is not in a batch yet */
    bool written;    /* hash is of the file's content */
    bool aside;      /* the run folder has one, as the disk took none */
    uint64_t number; /* of the newest: counts up */
    uint64_t hash;   /* of the content written last */
    TAILQ_ENTRY(pod_record) link;
    char error[256]; /* why it could not be written; "" */
};

static inline struct pod_record *record_of(const struct pod *p)
{
    return p->parts[ROOM_RECORD];
}
#endif
