/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's current step, since when, what it waits for, and when it tries again. */
#include "agent/pod/show/explain.h"
#include "agent/pod/admit/resize.h"
#include "agent/pod/container/hooks.h"
#include "agent/pod/container/probes.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/image/images.h"
#include "agent/pod/record/record_save.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/usage/local_storage.h"
#include "agent/pod/volume/live_sub_path.h"
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

static void add_clean_up(const struct pod *p, json_t *steps)
{
    const struct reap *r;
    bool running = false;

    TAILQ_FOREACH (r, &p->reaps, link) {
        if (!clock_boot_is_set(r->again_at))
            running = true;
        else
            explain_step(steps, "clean-up", "failed", 0, r->error, clock_boot_to_wall_ns(r->again_at));
    }
    if (running)
        explain_step(steps, "clean-up", "running", p->state_since_ns, "removing the remains of containers",
                     0);
}

json_t *explain_operation(const struct op *op)
{
    json_t *o = json_object();

    json_put_str(o, "name", op->name);
    json_put_str(o, "subject", op->subject);
    json_object_set_new(o, "ageMs", json_integer((json_int_t)(clock_mono_ms() - op->started_ms)));
    return o;
}

/* "Readiness probe of web: failed twice in a row: HTTP probe failed with statuscode: 503" */
static void pod_explain_add_probe(const struct ctr *c, enum probe_type t, json_t *steps)
{
    str_auto name = str_printf("%s probe of %s", probe_type_name(t), c->spec->name);
    buf_auto detail = BUF_INIT(1024);
    struct probe_view v;

    if (name == NULL || !probes_view(c, t, &v) || !ctr_alive(c))
        return;
    if (v.held)
        buf_adds(&detail, "failed: ending its container");
    else if (v.last_ns == 0)
        buf_adds(&detail, v.running      ? "first check in progress"
                          : v.waiting    ? "waiting for a slot: other probes are being started"
                          : v.due_ns > 0 ? "not checked yet"
                          : t == PROBE_STARTUP || c->spec->startup == NULL
                              ? "not checked: its container is not started"
                              : "waiting for the startup probe");
    else
        buf_addf(&detail, "last check %s",
                 v.last_errored  ? "could not be carried out"
                 : v.last_failed ? "failed"
                                 : "succeeded");
    if (v.run > 1 && !v.last_errored)
        buf_addf(&detail, " (%u in a row)", v.run);
    if (v.last_text[0] != '\0' && v.last_failed)
        buf_addf(&detail, ": %s", v.last_text);
    explain_step(steps, name,
                 v.last_errored                                        ? "failed"
                 : v.result == RESULT_SUCCESS                          ? "done"
                 : v.result == RESULT_FAILURE && (v.last_ns || v.held) ? "failed"
                                                                       : "waiting",
                 v.last_ns, detail.p, v.due_ns);
}

struct op_filter {
    const struct pod *p;
    json_t *list;
};

/* Whether the subject is that name, alone or followed by more; not another name with that prefix. */
static bool names(const char *subject, const char *what)
{
    const char *at = what[0] != '\0' ? strstr(subject, what) : NULL;

    return at != NULL && strchr("/ :", at[strlen(what)]) != NULL; /* or its end */
}

static void pod_explain_add_operation(const struct op *op, void *arg)
{
    struct op_filter *f = arg;
    bool mine = names(op->subject, f->p->key) || names(op->subject, f->p->uid) ||
                names(op->subject, f->p->sandbox_id);
    const struct reap *r;

    for (size_t i = 0; i < f->p->n_ctrs; i++)
        mine = mine || names(op->subject, f->p->ctrs[i].cur.id);
    TAILQ_FOREACH (r, &f->p->reaps, link)
        mine = mine || names(op->subject, r->id);
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
        sandbox_explain(p, steps);
        volumes_explain(p, steps);
        local_storage_explain(p, steps);
        images_explain(p, steps);
        resize_explain(p, steps);
        for (size_t i = 0; i < p->n_ctrs; i++)
            explain_container(&p->ctrs[i], steps);
        for (size_t i = 0; i < p->n_ctrs; i++)
            live_sub_path_explain(&p->ctrs[i], steps);
        for (size_t i = 0; i < p->n_ctrs; i++)
            for (int t = 0; t < PROBE_TYPES; t++)
                pod_explain_add_probe(&p->ctrs[i], (enum probe_type)t, steps);
        add_start(p, steps);
        add_clean_up(p, steps);
        pod_look_explain(p, steps);
        if (record_error(p) != NULL)
            explain_step(steps, "record", "failed", 0, record_error(p), 0);
    }
    shutdown_explain_pod(p, steps);
    if (p->successor != NULL)
        explain_step(steps, "successor", "waiting", p->state_since_ns,
                     "the edited manifest will start as a new pod when this one is gone", 0);
    json_object_set_new(o, "steps", steps);
    op_each(pod_explain_add_operation, &f);
    json_object_set_new(o, "operations", operations);
    return o;
}
