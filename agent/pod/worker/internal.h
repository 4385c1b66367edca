/* SPDX-License-Identifier: Apache-2.0 */
/* The worker room's private state of the node. */
#ifndef AGENT_POD_WORKER_INTERNAL_H
#define AGENT_POD_WORKER_INTERNAL_H
#include "agent/pod/core/pod.h"

enum shutdown_state {
    SHUTDOWN_UNKNOWN, /* the feature is on, but logind has not answered yet */
    SHUTDOWN_NO,
    SHUTDOWN_ENDING, /* waiting for the pods of `group` */
    SHUTDOWN_DONE,   /* all pods have ended, or their time is over */
};

struct shutdown { /* a shutdown of the machine (shutdown.c) */
    enum shutdown_state state;
    size_t group;
    uint64_t until_ms; /* clock_mono_ms() when the group's time is over */
    int64_t started_ns;
    unsigned n_ended, n_late; /* pods; late: those that outlived their group's time */
    uv_timer_t timer;
    void (*done)(void *arg);
    void *done_arg;
    char inhibitor[256]; /* the lock's state as text; "": unknown yet */
    bool inhibitor_failed;
    /* the last shutdown, from its file; 0: none */
    int64_t last_started_ns, last_ended_ns;
    unsigned last_ended, last_late;
    bool last_is_of_this_boot;
    char last_unread[504]; /* why that file could not be read; "": no error */
};

struct worker_node {
    TAILQ_HEAD(, pod) dirty; /* pods to reconcile, in order */
    uv_idle_t runner;
    bool runner_active;
    uv_timer_t left_timer; /* runs while a pod is left out of the table because memory was short */
    char left_out[256];    /* why a pod of the manifests is not in the table; "": none is missing */
    struct shutdown shutdown;
};

static inline struct worker_node *worker_node(const struct node *n)
{
    return n->parts[ROOM_WORKER];
}

/* ---- served.c: pods of the apiserver ---- */
/* Whether the new manifest of the same pod can be shown and applied; if not, this is reported. */
bool served_takes_edit(struct pod *p, const struct api_pod *api);
void served_deletion(struct pod *p, const struct api_pod *api); /* its end begins, or gets shorter */
/* Of a pending pod: false if it is not to be admitted, because it is deleted or cannot run here. */
bool served_step(struct pod *p);
#endif
