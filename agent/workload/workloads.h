/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workloads - the workloads of the manifest folder: keeps their pods in the store by the rules of decide.h
 * and job.h, and creates the Jobs of CronJobs.
 *
 * A workload's uid is derived from its kind, namespace and name, and its pods refer to it (ownerReferences),
 * so pods of an earlier run are found again. A pod whose workload is not in the store ends, unless the
 * manifest folder is missing or has a file with problems, which may define the workload. Loop thread only.
 */
#ifndef AGENT_WORKLOAD_WORKLOADS_H
#define AGENT_WORKLOAD_WORKLOADS_H
#include "agent/claim/claims.h"

struct workloads;

struct workloads_options {
    struct node *node;     /* with its store and timers; borrowed while the workloads are open */
    struct claims *claims; /* borrowed in the same way */
    /* Whether every object of the folder is known: the folder exists, and no file has problems. */
    bool (*complete)(void *arg);
    /* Removes the object from its file, as `kubectl delete` does. A failure is logged. */
    void (*remove)(void *arg, enum api_kind kind, const char *namespace_, const char *name);
    void *arg;
};

enum err_code workloads_open(struct workloads **ret, const struct workloads_options *o,
                             struct err *e) MUST_CHECK;
const struct node_workloads *workloads_link(struct workloads *w); /* for node_set_workloads() */
/* Called when the folder's first set is in the store, before the node is notified: adopts pods of an earlier
 * run and creates missing ones. */
void workloads_begin(struct workloads *w);
/* Stops; pods are not changed. */
void workloads_stop(struct workloads *w);
/* After the node's last operation and before node_free(); the memory is freed from the loop. NULL is fine. */
void workloads_free(struct workloads *w);
#endif
