/* SPDX-License-Identifier: Apache-2.0 */
/* action - declarations shared by rt_start and rt_delete: the run behind a struct rt_action. */
#ifndef AGENT_RUNTIME_ACTION_H
#define AGENT_RUNTIME_ACTION_H
#include "agent/runtime/container_internal.h"

struct rt_action_run {
    struct rt *rt;
    op_done_fn done;
    char id[RT_ID_SIZE];
    const struct rt_handler *handler; /* the one that created the container */
    struct proc proc;
    /* delete only */
    char cgroup_path[RT_CGROUP_PATH_MAX]; /* "": unknown */
    int conmon_fd;                        /* pidfd; -1: it has ended */
    bool never_created, being_created;
    uint64_t started_ms, pause_ms;
    uv_timer_t timer;
    bool has_timer;
    struct proc_call files;
};

/* Allocates the run and prepares the operation; false: done will report the error. */
bool rt_action_begin(struct rt_action *a, struct rt *rt, const char *id, const char *name,
                     uint64_t deadline_ms, op_abort_fn abort, op_done_fn done, void *owner);
/* Runs `<runtime> ... command [option] <id>` in the ops cgroup; option may be NULL. It logs only if there is
 * a bundle. */
void rt_action_call_runtime(struct rt_action *a, const char *name, const char *command, const char *option,
                            uint64_t deadline_ms, op_done_fn done);
#endif
