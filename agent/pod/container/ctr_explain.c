/* SPDX-License-Identifier: Apache-2.0 */
/* A container's current step or wait, for `coracle explain pod`. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/hooks.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/probes.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/volume/volumes.h"

#include "base/duration.h"

#include <string.h>

#define MESSAGE_SHOWN 500 /* bytes of a termination message, which may be a whole stack trace */
#define RECENT_NS (10 * 60 * INT64_C(1000000000)) /* a restart since then is part of the answer to "why" */

struct explained {
    const char *state;
    bool trouble; /* it explains why the pod is not healthy, or how it ended */
    struct boot_time next;
    struct buf detail;
};

/* ---- runs ---- */

static bool is_lost(const struct instance *i)
{
    return str_eq(i->reason, "ContainerStatusUnknown");
}

/* Without the line ends that most programs write last. */
static void add_message(const char *message, const char *before, struct buf *b)
{
    size_t n = strnlen(message, MESSAGE_SHOWN);

    while (n > 0 && strchr(" \t\r\n", message[n - 1]) != NULL)
        n--;
    if (n > 0)
        buf_addf(b, "%s%.*s", before, (int)n, message);
}

/* "OOMKilled, exit code 137 (SIGKILL): Memory cgroup out of memory: Killed process 12 (tail), ..." */
static void add_run(const struct instance *i, struct buf *b)
{
    const char *signal = i->exit_code > 128 && !is_lost(i) ? sigabbrev_np(i->exit_code - 128) : NULL;

    buf_addf(b, "%s, exit code %d", i->reason, i->exit_code);
    if (signal != NULL)
        buf_addf(b, " (SIG%s)", signal);
    if (is_lost(i))
        buf_adds(b, " (lost: its conmon was gone, or its bundle was damaged, and there was no exit code)");
    if (i->why != NULL)
        buf_addf(b, ": %s", i->why);
    if (i->message != NULL && !is_lost(i))
        add_message(i->message, i->why != NULL ? "; it said: " : ": ", b);
}

static bool failed(const struct instance *i)
{
    return i->ended && (i->exit_code != 0 || str_eq(i->reason, "OOMKilled"));
}

static bool pod_is_over(const struct pod *p)
{
    return p->state == POD_TERMINATING || p->state == POD_TERMINATED;
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

/* The waits of its probes. */
static bool add_not_ready(const struct ctr *c, struct buf *b)
{
    struct probe_view v;

    if (probes_view(c, PROBE_STARTUP, &v) && v.result != RESULT_SUCCESS)
        buf_adds(b, ", its startup probe has not succeeded");
    else if (probes_view(c, PROBE_READINESS, &v) && v.result != RESULT_SUCCESS)
        buf_adds(b, ", not ready: its readiness probe has not succeeded");
    else
        return false;
    if (v.last_failed && v.run > 1)
        buf_addf(b, " (failed %u times in a row)", v.run);
    if (v.last_failed && v.last_text[0] != '\0')
        buf_addf(b, ": %s", v.last_text);
    return true;
}

static void explain_running(const struct ctr *c, struct explained *x)
{
    const struct ctr_own *own = own_of(c);

    x->state = "done";
    buf_adds(&x->detail, "running");
    if (own->post != POST_NONE) {
        x->state = "running";
        x->trouble = true;
        buf_adds(&x->detail, "; its postStart hook is running");
    } else {
        x->trouble = add_not_ready(c, &x->detail);
    }
    if (c->last.ended && c->restarts > 0) {
        buf_adds(&x->detail, "; the run before: ");
        add_run(&c->last, &x->detail);
        x->trouble = x->trouble || clock_boot_since_ns(c->last.ended_at) < RECENT_NS;
    }
    if (own->env_old != NULL)
        buf_addf(&x->detail, "; its environment is older than %s", own->env_old);
}

/* One that has to succeed before; NULL: none. */
static const struct ctr *awaited_init(const struct ctr *c)
{
    const struct pod *p = c->pod;

    for (size_t i = 0; i < p->n_ctrs && p->ctrs[i] != c && !p->initialized; i++)
        if ((p->ctrs[i]->kind == CTR_INIT && !ctr_is_done(p->ctrs[i])) ||
            (p->ctrs[i]->kind == CTR_SIDECAR && !own_of(p->ctrs[i])->started_once))
            return p->ctrs[i];
    return NULL;
}

/* Why it has not started, although nothing is wrong with itself. */
static void add_awaited(const struct ctr *c, struct buf *b)
{
    const struct pod *p = c->pod;
    const struct ctr *init = c->kind != CTR_EPHEMERAL ? awaited_init(c) : NULL;

    if (init != NULL)
        buf_addf(b, "waiting for %s %s", init->kind == CTR_INIT ? "init container" : "sidecar",
                 init->spec->name);
    else if (devices_preparing(c))
        buf_adds(b, "waiting for a device plugin to prepare its devices (PreStartContainer)");
    else if (own_of(c)->create_waiting)
        buf_adds(b, "waiting for a slot: other containers are being created");
    else if (!volumes_ready(p))
        buf_adds(b, "waiting for the pod's volumes");
    else if (!sandbox_pinned(p))
        buf_adds(b, "waiting for the pod's namespaces");
    else if (sandbox_net(p) != NET_READY)
        buf_adds(b, "waiting for the pod's network");
    else if (own_of(c)->cdi_missing)
        buf_adds(b, "waiting until the CDI specs are read");
    else
        buf_adds(b, "waiting for its turn or its image");
}

/* The cause precedes the back-off. kubelet uses the opposite order: `Back-off pulling image "x":
 * ErrImagePull: ...`. */
static void add_obstacle(const struct ctr *c, struct buf *b)
{
    const char *message = c->waiting_message, *cause;

    if (str_eq(c->waiting_reason, "CrashLoopBackOff") && c->cur.ended) {
        add_run(&c->cur, b);
        buf_addf(b, "; back-off %s before the next start", duration_format_ms(own_of(c)->backoff_ms).s);
        return;
    }
    cause = str_eq(c->waiting_reason, "ImagePullBackOff") && message != NULL ? strstr(message, "\": ") : NULL;
    if (cause != NULL)
        buf_addf(b, "%s; back-off before the next pull", cause + 3);
    else if (message != NULL && message[0] != '\0')
        buf_addf(b, "%s: %s", c->waiting_reason, message);
    else
        buf_adds(b, c->waiting_reason);
    if (failed(&c->cur)) {
        buf_adds(b, "; the last run: ");
        add_run(&c->cur, b);
    }
}

static void explain_absent(const struct ctr *c, struct explained *x)
{
    const struct ctr_own *own = own_of(c);

    if (c->cur.ended && (pod_is_over(c->pod) || !ctr_restart_wanted(c))) {
        x->state = "done";
        x->trouble = failed(&c->cur) || c->cur.why != NULL;
        buf_adds(&x->detail, "ended: ");
        add_run(&c->cur, &x->detail);
        return;
    }
    if (pod_is_over(c->pod)) {
        x->state = "done";
        buf_adds(&x->detail, "never ran: the pod ended before");
        return;
    }
    x->state = c->waiting_reason[0] != '\0' ? "failed" : "waiting";
    x->next = ctr_backoff_until(c);
    if (clock_boot_is_before(x->next, own->retry_at))
        x->next = own->retry_at;
    x->trouble = true;
    if (c->waiting_reason[0] != '\0')
        add_obstacle(c, &x->detail);
    else
        add_awaited(c, &x->detail);
}

static void explain_ending(const struct ctr *c, struct explained *x)
{
    const struct ctr_own *own = own_of(c);
    char text[320];

    x->trouble = true;
    x->next = c->state == CTR_KILLING ? own->kill_again_at : own->stop_deadline;
    if (c->cur.why != NULL)
        buf_addf(&x->detail, "%s; ", c->cur.why);
    if (c->state == CTR_PRESTOP) {
        buf_adds(&x->detail, hook_live(c) ? "its preStop hook is running; the stop signal follows"
                                          : "ending; signalled when the containers before it have ended");
    } else if (c->state == CTR_STOPPING) {
        buf_adds(&x->detail, "stop signal sent; SIGKILL follows at nextTry");
    } else {
        describe_stuck(c, text, sizeof(text));
        buf_adds(&x->detail, text);
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
        buf_adds(&x->detail, sandbox_net(p) != NET_READY ? "created; waiting for the pod's network"
                             : !p->record_durable ? "created; waiting for the pod's record to be on disk"
                             : !devices_durable(p)
                                 ? "created; waiting for the checkpoint of devices to be on disk"
                                 : "created");
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
        buf_adds(&x->detail, ctr_state_name(c->state));
        return;
    }
}

static struct explained explained(const struct ctr *c)
{
    struct explained x = { .state = "running" };

    buf_init(&x.detail, 64 * 1024);
    explain_state(c, &x);
    return x;
}

static char *name_of(const struct ctr *c)
{
    return str_printf("%s %s",
                      c->kind == CTR_REGULAR   ? "container"
                      : c->kind == CTR_INIT    ? "init container"
                      : c->kind == CTR_SIDECAR ? "sidecar"
                                               : "ephemeral container",
                      c->spec->name);
}

void containers_explain(const struct pod *p, json_t *steps)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        struct explained x = explained(c);
        str_auto name = name_of(c);

        if (name != NULL)
            explain_step(steps, name, x.state, clock_boot_to_wall_ns(c->state_began), x.detail.p,
                         clock_boot_to_wall_ns(x.next));
        buf_done(&x.detail);
    }
}

void containers_why(const struct pod *p, json_t *why)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct explained x = explained(p->ctrs[i]);
        str_auto name = name_of(p->ctrs[i]);

        if (name != NULL && x.trouble)
            explain_why(why, "%s: %s", name, x.detail.p);
        buf_done(&x.detail);
    }
}
