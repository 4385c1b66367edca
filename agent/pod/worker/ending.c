/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending - the steps of a terminating pod: its containers, namespaces, network, volumes and cgroup end in
 * that order.  As in worker.c, nothing here waits.
 */
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/image/images.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/record/record.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/volume/volumes.h"
#include "agent/pod/worker/shutdown.h"
#include "agent/pod/worker/worker.h"
#include "base/clock.h"
#include "base/log.h"

#define CGROUP_PAUSE_MIN_NS (20 * INT64_C(1000000))
/*
 * Stops the containers: first all regular ones together, then the sidecars from the last to the first.
 * Returns true when none is alive.
 */
#define CGROUP_PAUSE_MAX_NS (5 * INT64_C(1000000000))
static bool stop_containers(struct pod *p)
{
    /*
     * The grace period begins with the pod's termination, so waiting for other containers and restarts of the
     * agent use it up.
     */
    int64_t grace_ns = p->grace_seconds * INT64_C(1000000000);
    int64_t left_ns = clock_boot_left_ns(clock_boot_after(p->state_began, grace_ns));
    bool alive = false;

    if (left_ns < 0)
        left_ns = 0; /* ctr_stop() still grants kubelet's minimum of 2 s */

    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        ctr_refresh(c);
        if (c->state == CTR_NONE)
            continue;
        if (p->kill_now) {
            ctr_kill(c);
            alive = alive || c->state != CTR_NONE;
            continue;
        }
        if (c->kind == CTR_SIDECAR) {
            ctr_stop_begin(c, left_ns); /* the preStop hooks run in parallel */
            continue;
        }
        ctr_stop(c, left_ns);
        alive = alive || c->state != CTR_NONE;
    }
    for (size_t i = p->n_ctrs; i-- > 0;) {
        struct ctr *c = p->ctrs[i];
        if (c->kind != CTR_SIDECAR || c->state == CTR_NONE || p->kill_now)
            continue;
        if (!alive || left_ns == 0)
            ctr_stop(c, left_ns);
        else
            pod_wake_at(p, clock_boot_in_ns(left_ns), "grace is over");
        alive = alive || c->state != CTR_NONE;
    }
    return !alive;
}

/* The phase of a pod whose end was requested, from the last exits of its containers. */
static const char *ended_phase(const struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (p->ctrs[i]->kind == CTR_REGULAR && (!p->ctrs[i]->cur.ended || p->ctrs[i]->cur.exit_code != 0))
            return "Failed";
    return "Succeeded";
}

/* How long to wait before the next attempt to remove the cgroup: short at first, then growing. */
static int64_t cgroup_pause_ns(const struct pod *p)
{
    int64_t pause = clock_boot_since_ns(p->state_began) / 16;

    return pause < CGROUP_PAUSE_MIN_NS   ? CGROUP_PAUSE_MIN_NS
           : pause > CGROUP_PAUSE_MAX_NS ? CGROUP_PAUSE_MAX_NS
                                         : pause;
}

void pod_ending_step(struct pod *p)
{
    struct node *n = p->node;
    char path[512];
    struct err e = { 0 };

    if (n->closing)
        return;
    /* Otherwise an agent that is killed now would take the containers' ends for their own. What cannot wait
     * is recorded in the run folder: a write to a busy disk may wait for a commit of its journal. */
    if (p->evicted_ns != 0 && pod_record_awaited(p) && !(p->kill_now && record_save_ahead(p))) {
        pod_wake(p, "its eviction is recorded first");
        return;
    }
    for (size_t i = 0; i < p->n_ctrs; i++)
        probes_step(p->ctrs[i]);
    if (!stop_containers(p) || reaps_hold(p))
        return;
    if (!pidns_teardown_step(p) || !sandbox_teardown_step(p))
        return;
    if ((!shutdown_keeps_volumes(p) || volumes_working(p)) && !volumes_teardown_step(p))
        return;
    if (images_busy(p))
        return;
    if (resources_cgroup_path(p, path, sizeof(path), &e) == ERR_OK) {
        struct err unknown = { 0 };
        if (!presence_is_absent(cg_has_processes(n->o.cgroups, path, &unknown)) &&
            cg_kill(n->o.cgroups, path, &e) != ERR_OK)
            log_warn("cannot kill the pod's cgroup; will retry", F_STR("pod", p->key), F_ERR(&e));
        usage_forget(n, path);
        if (cg_remove(n->o.cgroups, path, &e) != ERR_OK) {
            log_debug("cannot remove the pod's cgroup yet", F_STR("pod", p->key), F_ERR(&e));
            pod_wake_at(p, clock_boot_in_ns(cgroup_pause_ns(p)), "cgroup removal is tried again");
            return;
        }
    }
    p->cgroup_made = false;
    resize_cgroup_gone(p);
    if (p->phase[0] == '\0')
        snprintf(p->phase, sizeof(p->phase), "%s", ended_phase(p));
    devices_release(p);
    pod_set_state(p, POD_TERMINATED);
    resources_qos_update(n);
    eviction_pod_ended(p);
    pods_wake_pending(
        n, "a pod ended"); /* also when the pod stays in the table: its ports and resources are free */
    log_info("pod ended", F_STR("pod", p->key), F_STR("podUID", p->uid), F_STR("phase", p->phase));
}

void pod_begin_termination(struct pod *p, int64_t grace_seconds, bool finishing, const char *why)
{
    if (grace_seconds < 0)
        grace_seconds = 1; /* the API's rule for negative values */
    if (grace_seconds > GRACE_MAX_SECONDS)
        grace_seconds = GRACE_MAX_SECONDS;
    if (p->state == POD_TERMINATING || p->state == POD_TERMINATED) {
        if (!finishing && p->deletion_ns == 0)
            p->deletion_ns = clock_wall_ns();
        if (grace_seconds < p->grace_seconds) { /* the grace period can only become shorter */
            p->grace_seconds = grace_seconds;
            p->record_dirty = true;
        }
        return;
    }
    log_info("pod ending", F_STR("pod", p->key), F_STR("podUID", p->uid), F_STR("why", why),
             F_I64("graceSeconds", grace_seconds));
    rooms_end_pod(p);
    p->finishing = finishing;
    p->grace_seconds = grace_seconds;
    if (!finishing)
        p->deletion_ns = clock_wall_ns();
    pod_set_state(p, POD_TERMINATING);
}
