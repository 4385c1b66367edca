/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_look - a pod after a failed lookup (base/presence.h): it does nothing, and repeats the lookup.
 *
 * The step that failed calls pod_look_again() and returns without deciding anything. The pod is woken after a
 * back-off of 50 ms, doubled up to 10 s; `coracle explain pod` shows the error; the first one in a row is
 * logged. A turn of the pod without failed lookups ends the row. Loop thread.
 */
#ifndef AGENT_POD_CORE_POD_LOOK_H
#define AGENT_POD_CORE_POD_LOOK_H
#include "base/clock.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct pod;
struct pod_look {     /* embedded in struct pod, zeroed */
    bool failed_now;  /* in the current turn */
    uint64_t wait_ms; /* until the next lookup; 0: the last turn succeeded */
    int64_t since_ns; /* wall clock */
    struct boot_time retry_at;
    char error[504];
};

void pod_look_again(struct pod *p, const struct err *e);
void pod_look_begin(struct pod *p); /* a turn of the pod begins */
void pod_look_end(struct pod *p);   /* and has ended */
void pod_look_explain(const struct pod *p, json_t *steps);
#endif
