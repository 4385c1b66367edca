/* SPDX-License-Identifier: Apache-2.0 */
/* pod_conditions - a pod's conditions: when they changed, and their form in the API. */
#include "agent/pod/container/container.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/status/internal.h"
#include "agent/pod/status/pod_status.h"
#include "agent/pod/status/status.h"
#include "agent/pod/volume/volumes.h"

#include "agent/api/oom_kill.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/limits/ctr_limits.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <string.h>

/* In kubelet's order. */
enum { C_READY_TO_START, C_INITIALIZED, C_READY, C_CONTAINERS_READY, C_SCHEDULED, C_ALL_RESTARTING };

static void pod_conditions_note(struct pod *p, int index, bool is_true)
{
    struct pod_shown *shown_part = shown_of(p);
    const char *status = is_true ? "True" : "False";

    if (strcmp(shown_part->conditions[index].status, status) == 0)
        return; /* the time changes only with the status */
    snprintf(shown_part->conditions[index].status, sizeof(shown_part->conditions[index].status), "%s",
             status);
    shown_part->conditions[index].since_ns = clock_wall_ns();
    p->record_dirty =
        /* later changes of the start are written together with it */
        p->record_dirty || p->state != POD_STARTING;
}

static void pod_conditions_put_condition(const struct pod *p, json_t *list, int index, const char *type,
                                         bool is_true, const char *reason, const char *message)
{
    json_t *o = json_object();
    const char *status = is_true ? "True" : "False";

    json_put_str(o, "type", type);
    status_put_generation(o, p->api);
    json_put_str(o, "status", status);
    json_object_set_new(o, "lastProbeTime", json_null());
    status_put_time(o, "lastTransitionTime", shown_of(p)->conditions[index].since_ns);
    json_put_str(o, "reason", reason);
    json_put_str(o, "message", message);
    json_array_append_new(list, o);
}

static bool is_unfinished(const struct ctr *c, bool ready)
{
    if (ready)
        return ctr_kind_lasts(c->kind) && !ctr_ready(c);
    return (c->kind == CTR_INIT && !ctr_ready(c)) || (c->kind == CTR_SIDECAR && !ctr_started(c));
}

/* The status requested by a readiness gate; NULL: no such condition. `others`: those that others have set in
 * the cluster. */
static const char *gate_status(const struct pod *p, const json_t *others, const char *type)
{
    static const char *const types[] = {
        "PodReadyToStartContainers", "Initialized",  "Ready",
        "ContainersReady",           "PodScheduled", "AllContainersRestarting"
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i], type) == 0)
            return shown_of(p)->conditions[i].status;
    return json_str(others, type);
}

/* The unmet readiness gates, in kubelet's words, or NULL. */
static char *closed_gates(const struct pod *p)
{
    buf_auto b = BUF_INIT(64 * 1024);
    const char *text = p->api->spec.n_readiness_gates > 0 ? p->api->served.conditions : NULL;
    json_auto_t *others = text != NULL ? json_loads(text, 0, NULL) : NULL;

    for (size_t i = 0; i < p->api->spec.n_readiness_gates; i++) {
        const char *type = p->api->spec.readiness_gates[i].condition_type,
                   *status = gate_status(p, others, type);
        if (status == NULL)
            buf_addf(&b, "%scorresponding condition of pod readiness gate \"%s\" does not exist.",
                     b.n > 0 ? ", " : "", type);
        else if (strcmp(status, "True") != 0)
            buf_addf(&b, "%sthe status of pod readiness gate \"%s\" is not \"True\", but %s",
                     b.n > 0 ? ", " : "", type, status);
    }
    return b.n > 0 ? buf_detach(&b) : NULL;
}

/* "containers with unready status: [a b]"; NULL if all are fine. */
static char *unfinished(const struct pod *p, bool ready)
{
    buf_auto b = BUF_INIT(64 * 1024);
    size_t n = 0;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        if (is_unfinished(c, ready))
            buf_addf(&b, "%s%s", n++ > 0 ? " " : "", c->spec->name);
    }
    return n == 0 ? NULL
                  : str_printf("containers with %s status: [%s]", ready ? "unready" : "incomplete", b.p);
}

/* Volumes and network are set up in parallel here, in kubelet volumes come first: a network that is ready
 * before the volumes is not shown, so that "ready to start containers" is true. */
bool pod_network_shown(const struct pod *p)
{
    return volumes_ready(p) || p->initialized || p->state == POD_TERMINATING || p->state == POD_TERMINATED;
}

static bool ready_to_start(const struct pod *p)
{
    return sandbox_net(p) == NET_READY && pod_network_shown(p);
}

void pod_note_conditions(struct pod *p)
{
    bool over = strcmp(pod_phase(p), "Succeeded") == 0 || strcmp(pod_phase(p), "Failed") == 0;
    bool initialized = true, ready = !over;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        ready = ready && !is_unfinished(p->ctrs[i], true);
        initialized = initialized && (p->initialized || !is_unfinished(p->ctrs[i], false));
    }
    pod_conditions_note(p, C_READY_TO_START, ready_to_start(p));
    pod_conditions_note(p, C_INITIALIZED, initialized);
    pod_conditions_note(p, C_CONTAINERS_READY, ready);
    pod_conditions_note(p, C_SCHEDULED, !p->unscheduled);
    pod_conditions_note(p, C_ALL_RESTARTING, !over && restart_all_wanted(p));
    str_auto gates = closed_gates(p);
    pod_conditions_note(p, C_READY, ready && gates == NULL);
}

bool pod_is_ready(const struct pod *p, int64_t *ret_since_ns)
{
    *ret_since_ns = shown_of(p)->conditions[C_READY].since_ns;
    return strcmp(shown_of(p)->conditions[C_READY].status, "True") == 0;
}

/* Parts of the manifest without effect are listed in the status. NULL: none. */
static json_t *ignored_condition(const struct pod *p)
{
    buf_auto b = BUF_INIT(64 * 1024);
    json_t *o;

    for (size_t i = 0; i < p->api->ignored.n; i++)
        buf_addf(&b, "%s%s", i > 0 ? "; " : "", p->api->ignored.v[i]);
    if (oom_kill_cannot(p))
        buf_addf(&b,
                 "%smetadata.annotations[" API_OOM_KILL "]: needs cgroup v2; on v1 a kill ends one process",
                 b.n > 0 ? "; " : "");
    if (b.n == 0)
        return NULL;
    o = json_object();
    json_put_str(o, "type", "coracle.dev/FieldsIgnored");
    json_put_str(o, "status", "True");
    status_put_time(o, "lastTransitionTime", p->start_time_ns != 0 ? p->start_time_ns : p->state_since_ns);
    json_put_str(o, "reason", "NotActedOn");
    json_put_str(o, "message", b.p);
    return o;
}

static bool is_disrupted(const struct pod *p)
{
    return p->shutdown_ns != 0 || p->preempted_ns != 0 || p->disrupted;
}

/* Ended by a shutdown of the machine, for a critical pod, or because the node was short of something. */
static json_t *disrupted_condition(const struct pod *p)
{
    int64_t since_ns = p->shutdown_ns != 0 ? p->shutdown_ns : p->disrupted ? p->evicted_ns : p->preempted_ns;
    json_t *o = json_object();

    json_put_str(o, "type", "DisruptionTarget");
    status_put_generation(o, p->api);
    json_put_str(o, "status", "True");
    json_object_set_new(o, "lastProbeTime", json_null());
    status_put_time(o, "lastTransitionTime", since_ns);
    json_put_str(o, "reason", "TerminationByKubelet");
    json_put_str(o, "message", p->shutdown_ns != 0 || p->disrupted ? p->message : PREEMPT_CONDITION);
    return o;
}

/* Kubelet makes the conditions before the phase of a removed pod becomes final. If one of its containers
 * never ran, or an init container had more to do, it is Pending until then. */
static bool removed_while_pending(const struct pod *p)
{
    if (p->state != POD_TERMINATED || p->finishing || p->rejected)
        return false;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];

        if (c->kind == CTR_INIT && !p->initialized && !ctr_is_done(c))
            return !c->cur.ended || ctr_restart_wanted(c);
        if (c->kind == CTR_REGULAR && !c->cur.ended)
            return true;
    }
    return false;
}

json_t *pod_conditions_json(struct pod *p)
{
    json_t *list = json_array();
    const char *phase = pod_phase(p);
    bool over =
        (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0) && !removed_while_pending(p);
    str_auto unready = unfinished(p, true);
    str_auto incomplete = p->initialized ? NULL : unfinished(p, false);
    const char *why = over              ? (phase[0] == 'S' ? "PodCompleted" : "PodFailed")
                      : unready != NULL ? "ContainersNotReady"
                                        : NULL;
    const char *message = over ? NULL : unready;

    pod_note_conditions(p);
    if (p->unscheduled) { /* no kubelet has seen it yet */
        pod_conditions_put_condition(p, list, C_SCHEDULED, "PodScheduled", false, "Unschedulable",
                                     p->message);
        return list;
    }
    resize_conditions(p, list);
    /* Only in its turn: before, failures concern the sandbox, which is not part of kubelet's condition. */
    bool no_network =
        !ready_to_start(p) && !over && sandbox_net(p) >= NET_PINNED && sandbox_trouble(p) != NULL;
    const char *problem = over ? NULL : p->api->served.problem;
    pod_conditions_put_condition(p, list, C_READY_TO_START, "PodReadyToStartContainers", ready_to_start(p),
                                 no_network        ? "NetworkNotReady"
                                 : problem != NULL ? "NotSupportedByNode"
                                                   : NULL,
                                 no_network ? sandbox_trouble(p) : problem);
    pod_conditions_put_condition(p, list, C_INITIALIZED, "Initialized", incomplete == NULL,
                                 incomplete != NULL ? "ContainersNotInitialized"
                                 : phase[0] == 'S'  ? "PodCompleted"
                                                    : NULL,
                                 incomplete);
    str_auto gates = why == NULL ? closed_gates(p) : NULL;
    if (gates != NULL)
        pod_conditions_put_condition(p, list, C_READY, "Ready", false, "ReadinessGatesNotReady", gates);
    else
        pod_conditions_put_condition(p, list, C_READY, "Ready", why == NULL, why, message);
    pod_conditions_put_condition(p, list, C_CONTAINERS_READY, "ContainersReady", why == NULL, why, message);
    const bool gated = p->api->spec.gated && p->state == POD_PENDING;
    pod_conditions_put_condition(p, list, C_SCHEDULED, "PodScheduled", !gated,
                                 gated ? "SchedulingGated" : NULL,
                                 gated ? "Scheduling is blocked due to non-empty scheduling gates" : NULL);
    if (restart_all_possible(p)) {
        bool now = !over && restart_all_wanted(p);
        pod_conditions_put_condition(p, list, C_ALL_RESTARTING, "AllContainersRestarting", now,
                                     now    ? "RestartAllContainersStarted"
                                     : over ? why
                                            : NULL,
                                     now ? "container exited with restart policy rule" : NULL);
    }
    if (is_disrupted(p) && p->state == POD_TERMINATED)
        json_array_append_new(list, disrupted_condition(p));
    json_t *ignored = ignored_condition(p);
    if (ignored != NULL)
        json_array_append_new(list, ignored);
    json_t *overlaps = volumes_overlaps_json(p);
    if (overlaps != NULL)
        json_array_append_new(list, overlaps);
    json_t *outdated = env_age_condition(p);
    if (outdated != NULL)
        json_array_append_new(list, outdated);
    return list;
}
