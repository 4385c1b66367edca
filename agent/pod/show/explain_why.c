/* SPDX-License-Identifier: Apache-2.0 */
/* explain_why - why a pod does not run, or how it ended: a line each, the cause first. */
#include "agent/pod/container/container.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/show/explain.h"
#include "base/codec/json.h"

#include <string.h>

/* A verdict about the whole pod: it was refused, or ended for a reason that concerns the whole pod. */
static void add_verdict(const struct pod *p, json_t *why)
{
    const char *message = p->message != NULL ? p->message : "";

    if (p->reason[0] == '\0')
        return;
    if (strcmp(p->reason, "DeadlineExceeded") == 0)
        explain_why(why, "%s: %s (activeDeadlineSeconds: %lld)", p->reason, message,
                    (long long)p->api->spec.active_deadline_seconds);
    else if (p->measured != NULL)
        explain_why(why, "%s: %s(%s)", p->reason, message, p->measured);
    else
        explain_why(why, "%s: %s", p->reason, message);
}

static void add_end(const struct pod *p, json_t *why)
{
    if (p->successor != NULL)
        explain_why(why, "its manifest changed: it ends and starts again with the new manifest");
    else if (p->deletion_ns != 0)
        explain_why(why, "its manifest was removed");
    else if (strcmp(p->phase, "Succeeded") == 0)
        explain_why(why, "Completed: all its containers ended with exit code 0");
}

/* Containers name the images that they lack, and the probes that fail. */
static bool is_told_by_containers(const char *step)
{
    return str_starts(step, "container ") || str_starts(step, "init container ") ||
           str_starts(step, "sidecar ") || str_starts(step, "image ") || strstr(step, " probe of ") != NULL;
}

static void add_failed_steps(const json_t *steps, json_t *why)
{
    const json_t *s;
    size_t i;

    json_array_foreach (steps, i, s) {
        const char *name = json_str(s, "name"), *detail = json_str(s, "detail");

        if (str_eq(json_str(s, "state"), "failed") && !is_told_by_containers(name))
            explain_why(why, "%s: %s", name, detail != NULL ? detail : "");
    }
}

json_t *explain_why_json(const struct pod *p, const json_t *steps)
{
    json_t *why = json_array();

    add_verdict(p, why);
    if (p->rejected)
        return why;
    if (p->state == POD_PENDING) {
        explain_why(why, "%s", p->message != NULL ? p->message : "waiting for the sources");
        return why;
    }
    if (p->reason[0] == '\0' && (p->state == POD_TERMINATING || p->state == POD_TERMINATED))
        add_end(p, why);
    add_failed_steps(steps, why);
    containers_why(p, why);
    if (p->reason[0] == '\0' && p->deletion_ns == 0 && strcmp(p->phase, "Failed") == 0)
        explain_why(why, "Failed: restartPolicy lets none of its containers start again");
    return why;
}
