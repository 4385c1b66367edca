/* SPDX-License-Identifier: Apache-2.0 */
/* What worker keeps of the node for itself. */
#ifndef AGENT_POD_WORKER_INTERNAL_H
#define AGENT_POD_WORKER_INTERNAL_H
#include "agent/pod/core/pod.h"

enum shutdown_state {
    SHUTDOWN_UNKNOWN, /* not told yet; the feature is on */
    SHUTDOWN_NO,
    SHUTDOWN_ENDING, /* pods of `group` are waited for */
    SHUTDOWN_DONE,   /* all are over, or had their time */
};

struct shutdown { /* of the machine: shutdown.c */
    enum shutdown_state state;
    size_t group;
    uint64_t until_ms; /* clock_mono_ms() at which the group has had its time */
    int64_t started_ns;
    unsigned n_ended, n_late; /* pods; late: those that outlived their group's time */
    uv_timer_t timer;
    void (*done)(void *arg);
    void *done_arg;
    char inhibitor[256]; /* what is known of the lock, for people; "": nothing yet */
    bool inhibitor_failed;
    /* the last one, from its file; 0: there was none */
    int64_t last_started_ns, last_ended_ns;
    unsigned last_ended, last_late;
    bool last_is_of_this_boot;
    char last_unread[504]; /* why that file could not be read; "": it was */
};

struct worker_node {
    TAILQ_HEAD(, pod) dirty; /* pods to be looked at, in their order */
    uv_idle_t runner;
    bool runner_active;
    uv_timer_t left_timer; /* runs while a pod of the manifests is left out for want of memory */
    char left_out[256];    /* why a pod of the manifests is not in the table; "" */
    struct shutdown shutdown;
};

static inline struct worker_node *worker_node(const struct node *n)
{
    return n->parts[ROOM_WORKER];
}
#endif
