/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_job - one thing that is removed in tries, until it is gone or the node closes. Private to the room.
 */
#ifndef AGENT_POD_LEFTOVERS_SWEEP_JOB_H
#define AGENT_POD_LEFTOVERS_SWEEP_JOB_H
#include "agent/pod/core/pod.h"
#include "volumes/csi/csi.h"

/* An item that is being removed, or a failed listing of items that is repeated. */
struct sweep_job {
    struct node *node;
    const char *what;
    void (*begin)(struct sweep_job *j);                   /* one try; ends in sweep_job_on_done() */
    enum err_code (*list)(struct node *n, struct err *e); /* NULL: something is being removed */
    char id[512];                                         /* container id, uid or cgroup path */
    struct rt_action action;
    struct cni_op cni;
    struct cni_attachment attachment;
    struct proc_call call;
    struct csi_remove csi;
    uv_timer_t retry;
    uint64_t pause_ms, since_ms;
    bool waiting, over, held; /* held by a foreign mount */
    char error[512];
    TAILQ_ENTRY(sweep_job) link;
};

/* Removes it, with the first try now. */
void sweep_job_new(struct node *n, const char *id, const char *what, void (*begin)(struct sweep_job *j));
/* Something of a pod that ended could not be removed (*e): it is tried again, unless the node closes. */
void sweep_job_retry(struct node *n, const char *id, const char *what, void (*begin)(struct sweep_job *j),
                     const struct err *e);
/* The end of a try: the job is over, or waits for the next one. */
void sweep_job_tried(struct sweep_job *j, const struct err *result);
void sweep_job_on_done(struct op *op, const struct err *result); /* the same; op->owner is the job */
void sweep_job_finish(struct sweep_job *j);                      /* nothing is left to remove */
bool sweep_has_job(struct node *n, const char *id, void (*begin)(struct sweep_job *j));

/* Finds leftovers of one kind and begins jobs for them. The content of an unreadable folder is unknown: then
 * nothing in it is removed, and the listing is repeated. */
void sweep_list(struct node *n, const char *what, enum err_code (*fn)(struct node *n, struct err *e));

/* ---- sweep.c ---- */
bool sweep_is_left_over(struct node *n, const char *uid); /* neither a pod's, nor foreign */

/* ---- sweep_logs.c: for sweep_list() ---- */
enum err_code sweep_list_logs(struct node *n, struct err *e) MUST_CHECK;
enum err_code sweep_list_log_links(struct node *n, struct err *e) MUST_CHECK;
#endif
