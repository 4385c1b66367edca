/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_times - where the time of a pod's first start is spent: when each step began and ended, counted from
 * the moment the agent first saw the pod. Steps overlap: the network is made while containers are created.
 * Shown by `coracle explain pod`, summed up in /metrics. Pods started by an earlier run of the agent are not
 * measured. Loop thread.
 */
#ifndef AGENT_POD_CORE_START_TIMES_H
#define AGENT_POD_CORE_START_TIMES_H
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct node;
struct pod;

enum start_step {
    START_ADMISSION,
    START_NAMESPACES,
    START_NETWORK, /* the plugins' ADD */
    START_VOLUMES,
    START_CREATE, /* from the first container's sub paths and bundle to the last one's "created" */
    START_RUN,    /* the runtime's start, from the first to the last container */
    START_STEPS,
};

struct start_times {
    uint64_t since_ns; /* uv_hrtime(); 0: not measured, or over */
    struct {
        uint32_t begin_us, end_us; /* end 0: not ended */
        bool begun;
    } step[START_STEPS];
    uint32_t whole_us; /* 0: not over */
};

#define START_STEP_BUCKETS 12

struct start_sums { /* sums of a node, per step */
    struct {
        uint64_t buckets[START_STEP_BUCKETS], count, sum_us;
    } step[START_STEPS];
};

void start_times_open(struct pod *p);                     /* it was just seen */
void start_times_begin(struct pod *p, enum start_step s); /* only the first call has an effect */
void start_times_end(struct pod *p, enum start_step s);   /* the last call wins */
void start_times_over(struct pod *p); /* it is running: adds the times to the node's sums */
/* "admission 0.0-0.3, network 1.9-20.4, ... ms; ran after 25.1 ms"; nothing if not measured. */
void start_times_text(const struct pod *p, struct buf *out);
void start_times_metrics(const struct node *n, struct buf *out);
#endif
