/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes - when a container's liveness, readiness and startup probes run and what their results mean, by
 * kubelet's rules (pkg/kubelet/prober):
 *
 *   - a result counts after as many equal checks in a row as its threshold says; until then the old one
 * stays: readiness begins as a failure, liveness as a success, startup as unknown;
 *   - the startup probe comes first; liveness and readiness wait for its success;
 *   - liveness and startup tick from the pod's start, readiness from the moment its container has started;
 *     initialDelaySeconds counts whole seconds since the container's start, on those ticks;
 *   - kubelet notices a new container up to a second late, which programs have come to need: in that second
 *     liveness is not checked, and readiness and startup are, but a failure then neither counts nor is told:
 *     who is ready at once is shown so at once;
 *   - a check that could not be carried out says nothing (three tries a tick);
 *   - after a failed liveness or startup probe nothing more is checked until there is a new container.
 *
 * Each container has one timer for its probes: nothing due, no wake-up.  A check that hangs delays no other;
 * those that need a process take a place among a bounded number for their first second.  Results wake the
 * pod.  They are in its record: a container that was ready stays so over a restart of the agent until a probe
 * says otherwise, and the first checks then are spread over a period.
 */
#ifndef AGENT_POD_CONTAINER_PROBES_H
#define AGENT_POD_CONTAINER_PROBES_H
#include "agent/pod/core/pod.h"

enum probe_type { PROBE_STARTUP, PROBE_LIVENESS, PROBE_READINESS };
#define PROBE_TYPES 3
const char *probe_type_name(enum probe_type t); /* "Startup", "Liveness", "Readiness" */

enum probe_result { RESULT_UNKNOWN, RESULT_SUCCESS, RESULT_FAILURE };

/* Level: begins, goes on or stops as the container's state asks.  Called whenever the pod is looked at. */
void probes_step(struct ctr *c);
/* For the newest instance; UNKNOWN when there is no such probe. */
enum probe_result probes_result(const struct ctr *c, enum probe_type t);
const struct api_probe *probes_spec(const struct ctr *c, enum probe_type t); /* NULL: none */
bool probes_live(const struct ctr *c);                                       /* a check is under way */
void probes_stop(struct ctr *c); /* cancels what is under way; closes nothing yet */
void probes_free(struct ctr *c); /* when none is live */

/* ---- for explain ---- */
struct probe_view {
    enum probe_result result;
    bool running, waiting; /* a check is under way; waits for a place */
    bool held;             /* nothing more until there is a new container */
    int64_t last_ns;       /* wall clock of the last check's end; 0: none yet */
    int64_t due_ns;        /* likewise of the next check; 0: none */
    unsigned run;          /* so many equal verdicts in a row */
    bool last_failed;      /* or it could not be made, which is no verdict: */
    bool last_errored;
    const char *last_text; /* borrowed; "" : nothing to tell */
};
bool probes_view(const struct ctr *c, enum probe_type t, struct probe_view *ret);

/* ---- pure parts, for tests ---- */

/* The first tick of `epoch + k * period` that is not before `at`. */
struct boot_time probes_tick(struct boot_time epoch, int64_t period_ns, struct boot_time at);

/* Counts equal verdicts and applies thresholds. */
struct probe_count {
    bool known, success; /* the last verdict */
    unsigned run;
};
/* One more verdict; returns whether it has reached its threshold. */
bool probes_count(struct probe_count *c, bool success, int32_t success_threshold, int32_t failure_threshold);
#endif
