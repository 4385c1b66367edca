/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/workload. Loop thread only. */
#ifndef AGENT_WORKLOAD_INTERNAL_H
#define AGENT_WORKLOAD_INTERNAL_H
#include "agent/source/store.h"
#include "agent/workload/decide.h"
#include "agent/workload/workloads.h"

#define WORKLOAD_UID_SIZE 37

struct workload_counts { /* of its pods that are wanted */
    unsigned pods, ready, available, updated, updated_available;
    unsigned active, succeeded, failed; /* of a Job */
};

struct workload {
    UT_hash_handle hh; /* by uid */
    char uid[WORKLOAD_UID_SIZE];
    enum api_kind kind;
    struct api_generic *object;
    int64_t generation; /* 1, and one more for each edit that this agent saw */
    struct workload_counts counts;
    int64_t ended_ns;                /* wall clock: when the last pod of a Job ended; 0 */
    int64_t created_ns, progress_ns; /* wall clock: the oldest pod; when counts changed last */
    struct boot_time progress_at;
    bool late;                  /* no progress for progressDeadlineSeconds */
    char problem[300];          /* why a pod cannot be made; "" */
    struct workload_seen *seen; /* of this step; `pods` has the pod of each */
    const struct pod **pods;
    size_t n_seen;
    json_t *told; /* the status that the clients of the store were told last; NULL: none */
};

struct workloads {
    struct workloads_options o;
    struct src_store *store;
    struct workload *all;
    struct node_workloads link;
    struct boot_timer timer;
    bool begun, stopped;
    int64_t next_ms; /* of this step: when to look again; -1: not by itself */
};

void workload_uid(enum api_kind kind, const char *namespace_, const char *name, char ret[WORKLOAD_UID_SIZE]);
struct workload *workload_find(struct workloads *w, const char *uid);
void workloads_wake(struct workloads *w);

/* ---- adopt.c ---- */
/* Puts the pods of an earlier run into the store again. */
void workloads_adopt(struct workloads *w);
/* Takes pods of workloads that are gone out of the store. False: some may belong to a file that is not
 * understood, look again. */
bool workloads_drop_orphans(struct workloads *w);

/* ---- show.c ---- */
/* Tells the clients of the status socket that keep a copy, if its status has changed. */
void workload_tell(struct workloads *w, struct workload *one);
json_t *workloads_object(enum api_kind kind, const char *namespace_, const char *name, void *arg,
                         struct err *e);
#endif
