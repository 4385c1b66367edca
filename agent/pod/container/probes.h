/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes - when a container's liveness, readiness and startup probes run and what their results mean, by
 * kubelet's rules (pkg/kubelet/prober):
 *
 * - a result takes effect after as many equal checks in a row as its threshold; until then the old one stays:
 *   readiness begins as a failure, liveness as a success, startup as unknown;
 * - liveness and readiness wait for the success of the startup probe;
 * - liveness and startup tick from the pod's start, readiness from its container's start; initialDelaySeconds
 *   counts whole seconds since the container's start, on those ticks;
 * - kubelet notices a new container up to a second late, which programs have come to rely on: during that
 *   second liveness is not checked, and failures of readiness and startup are ignored; a success takes
 *   effect;
 * - a check that could not be carried out has no result (three tries per tick);
 * - after a failed liveness or startup probe nothing more is checked until there is a new container.
 *
 * Each container has one timer for its probes: no wake-up if nothing is due. A hanging check delays no other;
 * checks that need a process occupy one of a limited number of slots during their first second. Results wake
 * the pod and are in its record: a ready container stays ready across a restart of the agent until a probe
 * says otherwise, and the first checks are then spread over a period.
 */
#ifndef AGENT_POD_CONTAINER_PROBES_H
#define AGENT_POD_CONTAINER_PROBES_H
#include "agent/pod/core/pod.h"

enum probe_type { PROBE_STARTUP, PROBE_LIVENESS, PROBE_READINESS };
#define PROBE_TYPES 3
const char *probe_type_name(enum probe_type t); /* "Startup", "Liveness", "Readiness" */

enum probe_result { RESULT_UNKNOWN, RESULT_SUCCESS, RESULT_FAILURE };

/* For the newest instance; UNKNOWN without such a probe. */
enum probe_result probes_result(const struct ctr *c, enum probe_type t);
const struct api_probe *probes_spec(const struct ctr *c, enum probe_type t); /* may be NULL */
bool probes_live(const struct ctr *c);                                       /* a check is in progress */
void probes_stop(struct ctr *c); /* cancels checks in progress; closes nothing yet */
void probes_free(struct ctr *c); /* only if none is live */

/* ---- for explain ---- */
struct probe_view {
    enum probe_result result;
    bool running, waiting; /* a check is in progress; it waits for a slot */
    bool held;             /* paused until there is a new container */
    int64_t last_ns;       /* wall clock of the last check's end; 0: none */
    int64_t due_ns;        /* likewise of the next check; 0: none */
    unsigned run;          /* number of equal verdicts in a row */
    bool last_failed;      /* or it could not be carried out, which is no verdict: */
    bool last_errored;
    const char *last_text; /* borrowed; "": none */
};
bool probes_view(const struct ctr *c, enum probe_type t, struct probe_view *ret);

/* ---- for /metrics/probes: probe_metrics.c ---- */
#define PROBE_BUCKETS 11
struct probe_tally {             /* since the agent knows the container; over its restarts */
    uint64_t successful, failed; /* checks, without those that could not be carried out */
    uint64_t buckets[PROBE_BUCKETS],
        sum_ns; /* how long the successful ones took; each bucket has the lower ones */
};
const struct probe_tally *probes_tally_of(const struct ctr *c,
                                          enum probe_type t); /* NULL: nothing was checked */
void probes_tally_add(struct probe_tally *t, bool success, int64_t took_ns);

/* ---- pure parts, for tests ---- */

/* The first tick of `epoch + k * period` not before `at`. */
struct boot_time probes_tick(struct boot_time epoch, int64_t period_ns, struct boot_time at);

/* Counts equal verdicts and applies thresholds. */
struct probe_count {
    bool known, success; /* the last verdict */
    unsigned run;
};
/* Adds a verdict; returns whether it has reached its threshold. */
bool probes_count(struct probe_count *c, bool success, int32_t success_threshold, int32_t failure_threshold);
#endif
