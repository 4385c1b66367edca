/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workloads - the workloads of the manifest folder: keeps their pods in the store as decide.h and job.h say,
 * and makes the Jobs of CronJobs.
 *
 * A workload's uid is made of its kind, namespace and name, and a pod carries it (ownerReferences), so pods
 * of an earlier run are found again. A pod whose workload is not in the store ends, unless the folder has a
 * file with problems, or is missing: the workload may be in there. Loop thread only.
 */
#ifndef AGENT_WORKLOAD_WORKLOADS_H
#define AGENT_WORKLOAD_WORKLOADS_H
#include "agent/claim/claims.h"

struct workloads;

struct workloads_options {
    struct node *node;     /* with its store and timers; borrowed while the workloads are open */
    struct claims *claims; /* likewise */
    /* Whether every object of the folder is known: no file has problems, and the folder is there. */
    bool (*complete)(void *arg);
    /* Takes the object out of its file, as `kubectl delete` does. A failure is logged. */
    void (*remove)(void *arg, enum api_kind kind, const char *namespace_, const char *name);
    void *arg;
};

enum err_code workloads_open(struct workloads **ret, const struct workloads_options *o,
                             struct err *e) MUST_CHECK;
const struct node_workloads *workloads_link(struct workloads *w); /* for node_set_workloads() */
/* The folder's first set is in the store, and the node is not told yet: takes pods of an earlier run over and
 * makes what is missing. */
void workloads_begin(struct workloads *w);
/* Stops: pods stay as they are. */
void workloads_stop(struct workloads *w);
/* After the node's last operation and before node_free(); the memory is freed from the loop. NULL is fine. */
void workloads_free(struct workloads *w);
#endif
