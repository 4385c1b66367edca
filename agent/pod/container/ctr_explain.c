/* SPDX-License-Identifier: Apache-2.0 */
/* What a container does or waits for, for `coracle explain pod`. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/hooks.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/volume/volumes.h"

#include <string.h>

struct explained {
    const char *state, *detail;
    struct boot_time next;
    char text[320];
};

static const char *lost_text(const struct instance *i)
{
    return str_eq(i->reason, "ContainerStatusUnknown")
               ? " (lost: its conmon was gone, or its bundle was damaged, and there was no exit code)"
               : "";
}

/* Processes that survive SIGKILL: which, and where in the kernel they are stuck. */
static void describe_stuck(const struct ctr *c, char *text, size_t size)
{
    struct node *n = c->pod->node;
    char path[512], where[200] = "";
    struct err e = { 0 };

    if (resources_cgroup_path(c->pod, path, sizeof(path), &e) == ERR_OK) {
        size_t k = strlen(path);
        snprintf(path + k, sizeof(path) - k, "/%s", c->cur.id);
        cg_stuck(n->o.cgroups, path, where, sizeof(where));
    }
    snprintf(text, size, "killed; waiting for the kernel to end it%s%s", where[0] != '\0' ? ": " : "", where);
}

static void explain_running(const struct ctr *c, struct explained *x)
{
    const struct ctr_own *own = own_of(c);

    x->state = "done";
    if (c->last.ended && c->restarts > 0) {
        snprintf(x->text, sizeof(x->text), "running; the run before: %s, exit code %d%s", c->last.reason,
                 c->last.exit_code, lost_text(&c->last));
        x->detail = x->text;
    }
    if (own->env_old != NULL) {
        snprintf(x->text, sizeof(x->text), "running; its environment is older than %s", own->env_old);
        x->detail = x->text;
    }
    if (own->post != POST_NONE) {
        x->state = "running";
        x->detail = "its postStart hook is running";
    }
}

/* Why it has not started. */
static const char *waits_for(const struct ctr *c)
{
    const struct pod *p = c->pod;

    if (c->waiting_reason[0] != '\0')
        return c->waiting_message != NULL ? c->waiting_message : c->waiting_reason;
    if (p->state == POD_TERMINATING || p->state == POD_TERMINATED)
        return "not started: the pod is ending";
    if (own_of(c)->create_waiting)
        return "waiting for a slot: other containers are being created";
    if (!volumes_ready(p))
        return "waiting for the pod's volumes";
    if (!sandbox_pinned(p))
        return "waiting for the pod's namespaces";
    if (sandbox_net(p) != NET_READY)
        return "waiting for the pod's network";
    return "waiting for its turn or its image";
}

static void explain_absent(const struct ctr *c, struct explained *x)
{
    const struct ctr_own *own = own_of(c);

    if (c->cur.ended && !ctr_restart_wanted(c)) {
        x->state = "done";
        snprintf(x->text, sizeof(x->text), "ended: %s, exit code %d%s", c->cur.reason, c->cur.exit_code,
                 lost_text(&c->cur));
        x->detail = x->text;
        return;
    }
    x->state = c->waiting_reason[0] != '\0' ? "failed" : "waiting";
    x->next = ctr_backoff_until(c);
    if (clock_boot_is_before(x->next, own->retry_at))
        x->next = own->retry_at;
    x->detail = waits_for(c);
}

static void explain_ending(const struct ctr *c, struct explained *x)
{
    const struct ctr_own *own = own_of(c);

    x->next = c->state == CTR_KILLING ? own->kill_again_at : own->stop_deadline;
    if (c->state == CTR_PRESTOP) {
        x->detail = hook_live(c) ? "its preStop hook is running; the stop signal follows"
                                 : "ending; signalled when the containers before it have ended";
    } else if (c->state == CTR_STOPPING) {
        x->detail = "stop signal sent; SIGKILL follows at nextTry";
    } else {
        describe_stuck(c, x->text, sizeof(x->text));
        x->detail = x->text;
    }
}

static void explain_state(const struct ctr *c, struct explained *x)
{
    const struct pod *p = c->pod;

    switch (c->state) {
    case CTR_NONE:
        explain_absent(c, x);
        return;
    case CTR_CREATED:
        x->state = "waiting";
        x->detail = sandbox_net(p) != NET_READY ? "created; waiting for the pod's network"
                    : !p->record_durable        ? "created; waiting for the pod's record to be on disk"
                                                : "created";
        return;
    case CTR_RUNNING:
        explain_running(c, x);
        return;
    case CTR_PRESTOP:
    case CTR_STOPPING:
    case CTR_KILLING:
        explain_ending(c, x);
        return;
    case CTR_MOUNTING:
    case CTR_CREATING:
    case CTR_STARTING:
        return;
    }
}

static void ctr_explain(const struct ctr *c, json_t *steps)
{
    struct explained x = { .state = "running", .detail = ctr_state_name(c->state) };
    str_auto name = str_printf("%s %s",
                               c->kind == CTR_REGULAR ? "container"
                               : c->kind == CTR_INIT  ? "init container"
                                                      : "sidecar",
                               c->spec->name);

    if (name == NULL)
        return;
    explain_state(c, &x);
    explain_step(steps, name, x.state, clock_boot_to_wall_ns(c->state_began), x.detail,
                 clock_boot_to_wall_ns(x.next));
}

void containers_explain(const struct pod *p, json_t *steps)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        ctr_explain(&p->ctrs[i], steps);
}
