/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a container's probes, for `coracle explain pod`. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/probes.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"

/* "Readiness probe of web: failed twice in a row: HTTP probe failed with statuscode: 503" */
static void probe_explain(const struct ctr *c, enum probe_type t, json_t *steps)
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

void probes_explain(const struct pod *p, json_t *steps)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        for (int t = 0; t < PROBE_TYPES; t++)
            probe_explain(p->ctrs[i], (enum probe_type)t, steps);
}
