/* SPDX-License-Identifier: Apache-2.0 */
/* probe_check - one check of any kind of probe, up to its verdict in kubelet's words. In done the op's memory
 * belongs to the caller again. Loop thread only. */
#ifndef AGENT_POD_CONTAINER_PROBE_CHECK_H
#define AGENT_POD_CONTAINER_PROBE_CHECK_H
#include "agent/pod/core/pod.h"
#include "agent/probe/probe.h"
#include "agent/runtime/exec.h"

#define PROBE_EXEC_OUTPUT_MAX (10 * 1024) /* kubelet's maxReadLength */

struct probe_attempt {
    /* done: the verdict */
    enum probe_outcome outcome;
    bool errored;    /* it could not be carried out */
    bool cancelled;  /* no verdict */
    struct buf text; /* the caller's (buf_done) */
    /* private */
    struct ctr *c;
    char *command; /* exec: for the timeout's message (an edit may replace the manifest meanwhile) */
    uint64_t timeout_ms;
    void (*done)(struct probe_attempt *a);
    struct rt_exec exec;
    struct probe_check check;
    uv_timer_t later;
};

/* `done` is called exactly once, later. */
void probe_attempt_start(struct probe_attempt *a, struct ctr *c, const struct api_probe *spec,
                         void (*done)(struct probe_attempt *a));
void probe_attempt_cancel(struct probe_attempt *a);
bool probe_needs_process(const struct ctr *c, const struct api_probe *spec);
#endif
