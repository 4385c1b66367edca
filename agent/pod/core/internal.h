/* SPDX-License-Identifier: Apache-2.0 */
/* What core keeps of the node for itself. */
#ifndef AGENT_POD_CORE_INTERNAL_H
#define AGENT_POD_CORE_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_starts.h"

#define EVENT_BUCKETS 128
struct event {
    TAILQ_ENTRY(event) link;
    LIST_ENTRY(event) near; /* of those whose `about` falls into the same bucket */
    uint64_t about;         /* a hash of uid, field_path and reason: those of each new event are looked up */
    char *namespace_, *pod, *uid, *field_path, *reason, *message, *detail;
    json_t *annotations;   /* NULL: none */
    enum api_kind kind;    /* of a Node "pod" and "uid" are its name */
    const char *component; /* the reporting component; a constant */
    bool warning;
    bool combined; /* represents many events with different messages */
    unsigned count;
    int64_t first_ns, last_ns; /* wall clock */
    struct boot_time last_at;
    uint64_t serial;
};

struct core_node {
    TAILQ_HEAD(, event) events; /* the newest last */
    LIST_HEAD(, event) events_about[EVENT_BUCKETS];
    size_t n_events, event_bytes; /* of messages and details */
    uint64_t event_serial;
    struct pod_starts starts;
    struct start_sums start_sums;
};

static inline struct core_node *core_node(const struct node *n)
{
    return n->parts[ROOM_CORE];
}
#endif
