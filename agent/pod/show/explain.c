/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's current step, its beginning, the cause of a wait, and the time of the next try. */
#include "agent/pod/show/explain.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/image/images.h"
#include "agent/pod/limits/isolation.h"
#include "agent/pod/record/record.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/volume/volumes.h"
#include "agent/pod/worker/shutdown.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <string.h>

static void add_start(const struct pod *p, json_t *steps)
{
    buf_auto text = BUF_INIT(512);

    start_times_text(p, &text);
    if (text.n > 0)
        explain_step(steps, "start", p->start_times.whole_us > 0 ? "done" : "running", p->start_time_ns,
                     text.p, 0);
}

json_t *explain_operation(const struct op *op)
{
    json_t *o = json_object();

    json_put_str(o, "name", op->name);
    json_put_str(o, "subject", op->subject);
    json_object_set_new(o, "ageMs", json_integer((json_int_t)(clock_mono_ms() - op->started_ms)));
    return o;
}

struct op_filter {
    const struct pod *p;
    json_t *list;
};

static void pod_explain_add_operation(const struct op *op, void *arg)
{
    struct op_filter *f = arg;
    bool mine = explain_names(op->subject, f->p->key) || explain_names(op->subject, f->p->uid) ||
                explain_names(op->subject, f->p->sandbox_id) || reaps_named(f->p, op->subject);

    for (size_t i = 0; i < f->p->n_ctrs; i++)
        mine = mine || explain_names(op->subject, f->p->ctrs[i]->cur.id);
    if (!mine)
        return;
    json_array_append_new(f->list, explain_operation(op));
}

json_t *explain_json(struct pod *p)
{
    json_t *o = json_object(), *steps = json_array(), *operations = json_array();
    struct op_filter f = { p, operations };

    json_put_str(o, "pod", p->key);
    json_put_str(o, "uid", p->uid);
    json_put_str(o, "state", pod_state_name(p->state));
    explain_put_ns(o, "since", p->state_since_ns);
    if (p->rejected)
        explain_step(steps, "admission", "failed", p->state_since_ns, p->message, 0);
    else
        explain_step(steps, "admission", p->admitted ? "done" : "waiting",
                     p->admitted ? p->start_time_ns : p->state_since_ns,
                     p->admitted          ? "admitted"
                     : p->message != NULL ? p->message
                                          : "waiting for the sources",
                     0);
    if (!p->rejected) {
        devices_explain(p, steps);
        sandbox_explain(p, steps);
        volumes_explain(p, steps);
        local_storage_explain(p, steps);
        images_explain(p, steps);
        resize_explain(p, steps);
        containers_explain(p, steps);
        isolation_explain(p, steps);
        for (size_t i = 0; i < p->n_ctrs; i++)
            live_sub_path_explain(p->ctrs[i], steps);
        probes_explain(p, steps);
        add_start(p, steps);
        reaps_explain(p, steps);
        pod_look_explain(p, steps);
        if (record_error(p) != NULL)
            explain_step(steps, "record", "failed", 0, record_error(p), 0);
    }
    shutdown_explain_pod(p, steps);
    if (p->successor != NULL)
        explain_step(steps, "successor", "waiting", p->state_since_ns,
                     "the edited manifest will start as a new pod when this one is gone", 0);
    json_object_set_new(o, "why", explain_why_json(p, steps));
    json_object_set_new(o, "steps", steps);
    op_each(pod_explain_add_operation, &f);
    json_object_set_new(o, "operations", operations);
    return o;
}
