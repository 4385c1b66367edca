/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: a pod's next step. Nothing here waits; every branch either starts an operation that will wake
 * the pod, arms the pod's timer, or finds that everything is as desired. */
#include "agent/pod/worker/worker.h"
#include "agent/api/kept_meta.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/core/pod_starts.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/image/images.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/record/record.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/status/status.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/volume/volumes.h"
#include "agent/pod/worker/internal.h"
#include "agent/pod/worker/pods.h"
#include "agent/pod/worker/shutdown.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

#define DEADLINE_TEXT "Pod was active on the node longer than the specified deadline"

/* ---- states ---- */

/* The phase of a pod whose containers have all ended for good, else NULL. */
static const char *final_phase(const struct pod *p)
{
    bool failed = false;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        if (c->kind == CTR_INIT && !p->initialized && c->cur.ended && c->state == CTR_NONE &&
            !ctr_is_done(c) && !ctr_restart_wanted(c))
            return "Failed"; /* an init container failed and may not run again */
    }
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        if (c->kind != CTR_REGULAR)
            continue;
        if (!c->cur.ended || c->state != CTR_NONE || ctr_restart_wanted(c))
            return NULL;
        failed = failed || c->cur.exit_code != 0;
    }
    return failed ? "Failed" : "Succeeded";
}

/* It is deleted, and stays in the store while its finalizers hold it. */
static bool is_held(const struct pod *p)
{
    const struct api_meta *m = &p->api->meta;
    const struct api_pod *stored =
        p->api->origin == API_FROM_FOLDER && p->wanted && p->successor == NULL
            ? src_store_pod(p->node->o.store, API_FROM_FOLDER, m->namespace, m->name)
            : NULL;

    return stored != NULL && api_kept_meta_deleting(stored->meta.kept);
}

static const char *why_ends(const struct pod *p)
{
    if (!p->wanted)
        return "its manifest is gone";
    return p->successor != NULL ? "its manifest changed" : "it is deleted, and its finalizers hold it";
}

/* ---- the steps of each state ---- */

static enum err_code admit_or_preempt(struct pod *p,
                                      enum err_code (*judge)(struct pod *, char[64], struct err *),
                                      char reason[64], struct err *e)
{
    enum err_code code = judge(p, reason, e);

    return code == ERR_EXHAUSTED && preempt_is_critical(p) ? preempt_for(p, reason, e) : code;
}

/* kubelet's order: devices are allocated before the numbers of extended resources are compared. */
static enum err_code admit(struct pod *p, char reason[64], struct err *e)
{
    enum err_code code = admit_or_preempt(p, admit_pod, reason, e);

    if (code == ERR_OK)
        code = devices_admit(p, reason, e);
    return code == ERR_OK ? admit_or_preempt(p, admit_extended, reason, e) : code;
}

/* False: the node does not take it now; woken when the node's taints change. */
static bool schedule_step(struct pod *p)
{
    struct err e = { 0 };
    const bool waited = p->unscheduled;

    p->unscheduled = admit_schedule(p, &e) != ERR_OK;
    if (!p->unscheduled)
        return true;
    if (!waited || !str_eq(p->message, e.text))
        pod_event(p, NULL, true, "FailedScheduling", "%s", e.text);
    free(p->message);
    p->message = strdup(e.text);
    return false;
}

static void pending_step(struct pod *p)
{
    struct node *n = p->node;
    struct err e = { 0 };
    char reason[64] = "";
    enum err_code code;

    if (!n->sources_ready || n->closing)
        return;
    if (!p->wanted || p->successor != NULL || is_held(p)) {
        pod_begin_termination(p, 0, false, why_ends(p));
        return;
    }
    if (!served_step(p) || !priority_step(p))
        return;
    if (p->api->spec.gated) { /* an edit of the manifest opens the gates */
        free(p->message);
        p->message = strdup("Scheduling is blocked due to non-empty scheduling gates");
        return;
    }
    if (!schedule_step(p))
        return;
    p->priority = pods_priority(n, p->api); /* its PriorityClass may have been read later than the pod */
    code = admit(p, reason, &e);
    switch (code) {
    case ERR_OK:
        break;
    case ERR_UNAVAILABLE: /* woken when a pod is gone */
        free(p->message);
        p->message = strdup(e.text);
        return;
    default:
        log_warn("pod rejected", F_STR("pod", p->key), F_STR("reason", reason), F_ERR(&e));
        pod_event(p, NULL, true, reason, "%s", e.text);
        snprintf(p->reason, sizeof(p->reason), "%s", reason);
        snprintf(p->phase, sizeof(p->phase), "Failed");
        free(p->message);
        p->message = str_printf("Pod was rejected: %s", e.text);
        p->rejected = true;
        p->preempting = false;
        p->shutdown_ns = shutdown_now(n) ? clock_wall_ns() : 0;
        p->start_time_ns = clock_wall_ns();
        devices_release(p);
        pod_set_state(p, POD_TERMINATED);
        return;
    }
    free(take_ptr(&p->message));
    p->admitted = true;
    p->preempting = false;
    if (p->start_time_ns == 0) {
        p->start_time_ns = clock_wall_ns();
        p->active_began = clock_boot();
    }
    start_times_end(p, START_ADMISSION);
    pod_set_state(p, POD_STARTING);
}

/* activeDeadlineSeconds begins at status.startTime (pkg/kubelet/active_deadline.go). */
static bool deadline_passed(struct pod *p)
{
    const struct api_pod_spec *s = &p->api->spec;
    struct boot_time at;

    if (!s->has_active_deadline || p->start_time_ns == 0)
        return false;
    at = clock_boot_after(p->active_began, s->active_deadline_seconds * INT64_C(1000000000));
    if (clock_boot_is_due(at))
        return true;
    pod_wake_at(p, at, "active deadline");
    return false;
}

/* Makes the pod's cgroup; returns true if it exists. */
static bool cgroup_step(struct pod *p)
{
    struct err e = { 0 };

    if (p->cgroup_made)
        return true;
    if (resize_pod_cgroup(p, &e) != ERR_OK) {
        log_warn("cannot create the pod's cgroup; will retry", F_STR("pod", p->key), F_ERR(&e));
        pod_event(p, NULL, true, "FailedCreatePodContainer", "unable to ensure pod container exists: %s",
                  e.text);
        pod_wake_at(p, clock_boot_in_ms(10000), "cgroup is tried again");
        return false;
    }
    p->cgroup_made = true;
    resources_qos_update(p->node);
    return true;
}

static void active_step(struct pod *p)
{
    struct node *n = p->node;
    const char *phase;

    for (size_t i = 0; i < p->n_ctrs; i++)
        ctr_refresh(p->ctrs[i]);
    if (!n->sources_ready || n->closing)
        return;
    if (!p->wanted || p->successor != NULL || is_held(p)) {
        pod_begin_termination(p,
                              p->grace_asked && (!p->wanted || is_held(p))
                                  ? p->asked_grace_s
                                  : p->api->spec.termination_grace_seconds,
                              false, why_ends(p));
        return;
    }
    if (deadline_passed(p)) {
        snprintf(p->phase, sizeof(p->phase), "Failed");
        snprintf(p->reason, sizeof(p->reason), "DeadlineExceeded");
        free(p->message);
        p->message = strdup(DEADLINE_TEXT);
        pod_event(p, NULL, false, "DeadlineExceeded", DEADLINE_TEXT);
        pod_begin_termination(p, p->api->spec.termination_grace_seconds, true, "its deadline has passed");
        return;
    }
    env_age_step(p);
    phase = final_phase(p);
    if (phase != NULL && sandbox_net(p) == NET_ADDING)
        return; /* the end has to wait for the ADD anyway, and the status shows its address */
    if (phase != NULL) {
        snprintf(p->phase, sizeof(p->phase), "%s", phase);
        pod_begin_termination(p, p->api->spec.termination_grace_seconds, true,
                              "all its containers have ended");
        return;
    }
    if (!cgroup_step(p))
        return;
    rooms_step_pod(p); /* in parallel: no room waits for another */

    if (p->state == POD_STARTING && p->initialized) {
        pod_set_state(p, POD_RUNNING);
        eviction_wake(n, EV_DISK_PRESSURE, "a pod runs");
        eviction_wake(n, EV_PID_PRESSURE, "a pod runs");
        pod_starts_add(p);
    }
}

/* `first` is the state in which this turn of the pod began. */
static void worker_step(struct pod *p, enum pod_state first)
{
    switch (p->state) {
    case POD_PENDING:
        pending_step(p);
        return;
    case POD_STARTING:
    case POD_RUNNING:
        active_step(p);
        return;
    case POD_TERMINATING:
        if ((!p->wanted || is_held(p)) && p->deletion_ns == 0) {
            p->deletion_ns = clock_wall_ns();
            p->record_dirty = true;
        }
        pod_ending_step(p);
        return;
    case POD_TERMINATED:
        if (shutdown_revive(p))
            return;
        if (first == POD_TERMINATED)
            readmit_step(p);
        else if (readmit_waits(p))
            pod_wake(p, "admission in its turn");
        return;
    }
}

static void reconcile(struct pod *p)
{
    struct node *n = p->node;
    enum pod_state first = p->state, before;

    pod_look_begin(p);
    if (p->unseen)
        pod_ask_recover(p);
    if (p->unseen) {
        pod_look_end(p);
        return;
    }
    do {
        before = p->state;
        reaps_step(p);
        worker_step(p, first);
    } while (p->state != before);

    if (p->state == POD_TERMINATED && n->sources_ready && !n->closing &&
        (!p->wanted || p->successor != NULL) && pod_idle(p) &&
        (p->shutdown_ns == 0 || volumes_teardown_step(p))) {
        pods_gone(p); /* frees p */
        return;
    }
    pod_look_end(p);
    pod_note_conditions(p);
    record_step(p);
    pod_show(p, "MODIFIED");
}

void pod_reconcile(struct pod *p)
{
    const struct log_context about = { .pod = p->key, .pod_uid = p->uid };
    struct log_context before = log_context_set(&about);

    log_debug("pod reconciled", F_STR("pod", p->key), F_STR("why", p->woken_why != NULL ? p->woken_why : ""));
    reconcile(p); /* may free p, whose memory stays valid for this turn of the loop */
    log_context_set(&before);
}

bool pod_idle(const struct pod *p)
{
    return !rooms_pod_busy(p);
}

const struct pod_upward worker_upward = {
    .queue = run_queue_add,
    .end = pod_begin_termination,
    .idle = pod_idle,
    .apply = pods_apply,
};
