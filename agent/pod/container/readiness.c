/* SPDX-License-Identifier: Apache-2.0 */
/* readiness - whether a container is running, started and ready, and the phase of its pod. */
#include "agent/pod/container/container.h"

#include "agent/pod/container/internal.h"
#include "agent/pod/container/probes.h"

static bool readiness_is_up(const struct ctr *c)
{
    return c->state == CTR_RUNNING || c->state == CTR_PRESTOP || c->state == CTR_STOPPING ||
           c->state == CTR_KILLING;
}

/* A postStart hook is part of the start: until it is over, the previous state is shown, as in kubelet. */
bool ctr_is_hidden(const struct ctr *c)
{
    return readiness_is_up(c) && own_of(c)->post != POST_NONE;
}

bool ctr_shown_running(const struct ctr *c)
{
    return readiness_is_up(c) && !ctr_is_hidden(c);
}

bool ctr_started(const struct ctr *c)
{
    return ctr_shown_running(c) &&
           (c->spec->startup == NULL || probes_result(c, PROBE_STARTUP) == RESULT_SUCCESS);
}

bool ctr_ready(const struct ctr *c)
{
    if (c->kind == CTR_INIT)
        return c->cur.ended && c->cur.exit_code == 0;
    if (c->kind == CTR_EPHEMERAL) /* as in kubelet */
        return false;
    return ctr_started(c) &&
           (c->spec->readiness == NULL || probes_result(c, PROBE_READINESS) == RESULT_SUCCESS);
}

const char *pod_phase(const struct pod *p)
{
    bool any_running = false, any_waiting = false;

    if (p->phase[0] != '\0' && (p->state == POD_TERMINATED || p->rejected))
        return p->phase;
    if (p->state == POD_PENDING)
        return "Pending";
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        if (c->kind == CTR_INIT && !p->initialized && !(c->cur.ended && c->cur.exit_code == 0))
            return "Pending";
        if (c->kind != CTR_REGULAR)
            continue;
        if (ctr_shown_running(c) || c->cur.ended || c->last.ended) /* between two runs a pod stays Running */
            any_running = true;
        else
            any_waiting = true;
    }
    return any_waiting || !any_running ? "Pending" : "Running";
}
