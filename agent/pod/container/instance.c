/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a container's run: noticing it, and stopping it. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/hooks.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/usage/usage.h"
#include "base/clock.h"
#include "base/log.h"

#include <signal.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define GRACE_MIN_NS (2 * SECOND)   /* kubelet: even grace 0 means TERM, 2 s, KILL */
#define KILL_AGAIN_NS (10 * SECOND) /* a killed container that does not end is killed again */

void instance_clear(struct instance *i)
{
    free(i->message);
    free(i->why);
    free(i->image_id);
    free(i->image_ref);
    *i = (struct instance){ 0 };
}

void ctr_ended(struct ctr *c, int exit_code, const char *reason, const char *message, int64_t finished_ns)
{
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;

    c->cur.ended = true;
    ctr_log_ended(c, c->cur.attempt);
    c->cur.exit_code = exit_code;
    c->cur.finished_ns = clock_wall_ns();
    if (finished_ns != 0 &&
        finished_ns < c->cur.finished_ns) /* an end in the future means that the clock was set */
        c->cur.finished_ns = finished_ns;
    c->cur.ended_at = finished_ns != 0 ? clock_boot_of_wall(finished_ns) : clock_boot();
    if (clock_boot_is_before(c->cur.ended_at, c->cur.started_at)) /* likewise, forward */
        c->cur.ended_at = c->cur.started_at;
    snprintf(c->cur.reason, sizeof(c->cur.reason), "%s", reason);
    free(c->cur.message);
    c->cur.message = message != NULL ? strdup(message) : NULL;
    own->stop_deadline = CLOCK_BOOT_NONE;
    own->stop_text[0] = '\0';
    ctr_waits_no_more(c);
    ctr_set_state(c, CTR_NONE);
    if (own->post == POST_FAILED && ctr_restart_wanted(c))
        ctr_waiting(c, "PostStartHookError", "%s", own->post_message != NULL ? own->post_message : "");
    if (own->post != POST_RUNNING)
        hook_set_post(c, POST_NONE);
    hook_container_ended(c);
    if (own->hook == NULL)
        hook_set_post(c, POST_NONE);
    p->record_dirty = true;
    log_info("container ended", F_STR("pod", p->key), F_STR("containerName", c->spec->name),
             F_STR("containerID", c->cur.id), F_I64("exitCode", exit_code), F_STR("reason", reason));
    ctr_reap_run(c);
    if (p->node->server != NULL)
        status_server_log_event(p->node->server, p->api->meta.namespace, p->api->meta.name);
}

static void unknown_now(struct ctr *c, const struct err *e)
{
    own_of(c)->unknown = true;
    pod_look_again(c->pod, e);
}

/* One that was waiting for its start under an earlier agent is made again: its inputs may be outdated. */
static enum err_code instance_adopt(struct ctr *c, struct rt_state *s, struct err *e)
{
    struct rt *rt = c->pod->node->rt;

    if (rt_adopt(rt, c->cur.id, e) != ERR_OK || rt_state(rt, c->cur.id, s, e) != ERR_OK)
        return e->code;
    own_of(c)->adopt_due = false;
    if (c->state == CTR_CREATED && s->phase == RT_CREATED)
        s->phase = RT_PARTIAL;
    return ERR_OK;
}

void ctr_refresh(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    struct rt *rt = c->pod->node->rt;
    str_auto message = NULL;
    struct err e = { 0 };
    struct rt_state s;

    if (!ctr_alive(c) || c->state == CTR_STARTING || op_live(&own->action.op))
        return;
    if ((own->adopt_due ? instance_adopt(c, &s, &e) : rt_state(rt, c->cur.id, &s, &e)) != ERR_OK) {
        unknown_now(c, &e);
        return;
    }
    own->unknown = false;
    if ((s.phase == RT_RUNNING || s.phase == RT_CREATED) && rt_watch_conmon(rt, c->cur.id, &e) != ERR_OK)
        pod_look_again(c->pod, &e); /* it is alive; only its end would not be noticed immediately */
    switch (s.phase) {
    case RT_RUNNING:
        if (c->state == CTR_CREATED) { /* the agent was restarted between the start and its record */
            ctr_set_state(c, CTR_RUNNING);
            ctr_note_start(c, s.started_ns, clock_boot_of_wall(s.started_ns));
            if (c->spec->post_start != NULL)
                hook_set_post(c, POST_RUNNING);
        }
        if (oom_watch(c, &e) != ERR_OK)
            pod_look_again(c->pod, &e);
        if (!own->log_kept) /* started by an earlier agent */
            ctr_log_keep(c, c->cur.attempt);
        return;
    case RT_CREATED:
        return;
    case RT_EXITED:
        if (c->cur.started_ns == 0 && s.started_ns != 0) /* likewise, and it has ended since */
            ctr_note_start(c, s.started_ns, clock_boot_of_wall(s.started_ns));
        if (s.started_ns != 0)
            c->cur.started_ns = s.started_ns;
        if (c->cur.started_ns == 0 && c->state == CTR_CREATED)
            break; /* its init died before the start */
        if (c->kind == CTR_REGULAR)
            pod_set_initialized(c->pod, true);
        /* The counter is removed with the cgroup, and the message is read only now. */
        if (oom_ended(c, &e) != ERR_OK || ctr_message(c, s.exit_code, &message, &e) != ERR_OK) {
            unknown_now(c, &e);
            return;
        }
        ctr_ended(c, s.exit_code,
                  s.oom_killed       ? "OOMKilled"
                  : s.exit_code == 0 ? "Completed"
                                     : "Error",
                  message, s.finished_ns);
        return;
    case RT_ABSENT:
    case RT_PARTIAL:
    case RT_LOST:
        if (c->cur.started_ns == 0 &&
            s.started_ns != 0) /* the agent was killed between the start and its record */
            ctr_note_start(c, s.started_ns, clock_boot_of_wall(s.started_ns));
        if (c->cur.started_ns == 0 && c->state == CTR_CREATED)
            break;
        log_warn("container lost: its supervisor is gone and left no exit code", F_STR("pod", c->pod->key),
                 F_STR("containerName", c->spec->name), F_STR("containerID", c->cur.id));
        ctr_ended(c, 137, "ContainerStatusUnknown",
                  "The container could not be located when the pod was terminated", 0);
        return;
    }
    /* Created but never started: remove it and make it again, as the same attempt. */
    ctr_log_ended(c, c->cur.attempt);
    ctr_reap(c->pod, c->cur.id, NULL);
    ctr_set_state(c, CTR_NONE);
}

void containers_recover(struct pod *p)
{
    containers_of(p)->env_look = true;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        if (c->state == CTR_NONE)
            continue;
        own_of(c)->adopt_due = true;
        ctr_refresh(c);
    }
}

/* ---- stopping ---- */

static int stop_signal(const struct ctr *c)
{
    int signo = 0;

    if (c->spec->stop_signal != NULL)
        signo = rt_signal_number(c->spec->stop_signal);
    if (signo == 0 && c->cur.image_id != NULL) {
        /* The image of this run: the manifest may name another one now. */
        scoped(img_unref) struct img_image *i = img_lookup(c->pod->node->o.images, c->cur.image_id);
        if (i != NULL && i->stop_signal != NULL)
            signo = rt_signal_number(i->stop_signal);
    }
    return signo != 0 ? signo : SIGTERM;
}

static void kill_all(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    struct err e = { 0 }, unknown = { 0 };
    struct rt_identity identity = { 0 };
    bool identified, empty = false;

    if (presence_is_unknown(rt_identity(c->pod->node->rt, c->cur.id, &identity, &unknown)))
        pod_look_again(c->pod, &unknown);
    identified = identity.cgroup_path[0] != '\0';

    /* The whole cgroup, so that no process using the host's PID namespace, or stuck behind init, is left. */
    if (identified) {
        if (cg_kill(c->pod->node->o.cgroups, identity.cgroup_path, &e) != ERR_OK)
            log_warn("cannot kill the container's cgroup", F_STR("pod", c->pod->key),
                     F_STR("containerName", c->spec->name), F_ERR(&e));
    } else if (rt_signal(c->pod->node->rt, c->cur.id, SIGKILL, &e) != ERR_OK && e.code != ERR_NOT_FOUND) {
        log_warn("cannot kill container", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
                 F_ERR(&e));
    }
    unknown = (struct err){ 0 };
    if (c->state == CTR_KILLING && identified)
        empty = presence_is_absent(cg_has_processes(c->pod->node->o.cgroups, identity.cgroup_path, &unknown));
    if (empty) {
        log_warn("container is dead but its conmon does not report it; killed conmon",
                 F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name));
        rt_kill_supervisor(c->pod->node->rt, c->cur.id);
    } else if (c->state == CTR_KILLING) {
        log_warn("container does not end; killed it again", F_STR("pod", c->pod->key),
                 F_STR("containerName", c->spec->name));
    }
    ctr_set_state(c, CTR_KILLING);
    /* Soon, if it could not be killed or examined. */
    own->kill_again_at =
        clock_boot_in_ns(e.code != ERR_OK && e.code != ERR_NOT_FOUND ? SECOND : KILL_AGAIN_NS);
    pod_wake_at(c->pod, own->kill_again_at, "kill is repeated");
}

/* Sends the signal; SIGKILL follows when the rest of the grace period is over. */
static void signal_now(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    struct boot_time kill_at = clock_boot_in_ns(GRACE_MIN_NS);
    struct err e = { 0 };

    if (rt_signal(c->pod->node->rt, c->cur.id, stop_signal(c), &e) != ERR_OK && e.code != ERR_NOT_FOUND &&
        !clock_boot_is_due(own->stop_deadline)) {
        pod_wake_at(c->pod, own->stop_deadline, "stop deadline");
        pod_look_again(c->pod, &e); /* it will be signalled again */
        return;
    }
    if (e.code != ERR_OK && e.code != ERR_NOT_FOUND)
        log_warn("cannot signal container", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
                 F_ERR(&e));
    if (clock_boot_is_before(own->stop_deadline, kill_at))
        own->stop_deadline = kill_at;
    ctr_set_state(c, CTR_STOPPING);
    pod_wake_at(c->pod, own->stop_deadline, "stop deadline");
}

/* CTR_PRESTOP, and its turn has come: the hook's time is part of the grace period. */
static void prestop_step(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    if (!hook_live(c)) {
        signal_now(c);
        return;
    }
    if (clock_boot_is_due(own->stop_deadline))
        hook_cancel(c);
    else
        pod_wake_at(c->pod, own->stop_deadline, "stop deadline");
}

void ctr_stop_begin(struct ctr *c, int64_t grace_ns)
{
    struct ctr_own *own = own_of(c);

    if (c->state != CTR_RUNNING)
        return;
    if (hook_live(c)) { /* postStart: its end wakes the pod */
        hook_cancel(c);
        return;
    }
    if (own->stop_text[0] == '\0')
        snprintf(own->stop_text, sizeof(own->stop_text),
                 c->replace ? "Container %s definition changed, will be restarted" : "Stopping container %s",
                 c->spec->name);
    pod_event(c->pod, c, false, "Killing", "%s", own->stop_text);
    own->stop_deadline = clock_boot_in_ns(grace_ns);
    if (own->post == POST_RUNNING) /* interrupted by a restart of the agent, and not to be run any more */
        hook_set_post(c, POST_NONE);
    ctr_set_state(c, CTR_PRESTOP);
    if (c->spec->pre_stop != NULL && grace_ns > 0)
        hook_pre_stop(c, grace_ns);
}

void ctr_stop_step(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    if (c->state == CTR_PRESTOP) {
        prestop_step(c);
    } else if (c->state == CTR_STOPPING) {
        if (clock_boot_is_due(own->stop_deadline))
            kill_all(c);
        else
            pod_wake_at(c->pod, own->stop_deadline, "stop deadline");
    } else if (c->state == CTR_KILLING) {
        if (clock_boot_is_due(own->kill_again_at))
            kill_all(c);
        else
            pod_wake_at(c->pod, own->kill_again_at, "kill is repeated");
    }
}

void ctr_kill(struct ctr *c)
{
    switch (c->state) {
    case CTR_RUNNING:
        pod_event(c->pod, c, false, "Killing", "Stopping container %s", c->spec->name);
        kill_all(c);
        return;
    case CTR_PRESTOP:
    case CTR_STOPPING:
        kill_all(c);
        return;
    default:
        ctr_stop(c, 0);
        return;
    }
}

void ctr_stop(struct ctr *c, int64_t grace_ns)
{
    struct ctr_own *own = own_of(c);
    struct boot_time deadline = clock_boot_in_ns(grace_ns), kill_at = clock_boot_in_ns(GRACE_MIN_NS);

    switch (c->state) {
    case CTR_NONE:
        return;
    case CTR_STARTING: /* short, and its end wakes the pod; a hanging one is cut off */
        if (clock_boot_since_ns(c->state_began) >= GRACE_MIN_NS)
            op_cancel(&own->action.op);
        else
            pod_wake_at(c->pod, clock_boot_after(c->state_began, GRACE_MIN_NS), "shortest grace is over");
        return;
    case CTR_MOUNTING:
        op_cancel(&own->subpaths.op);
        return;
    case CTR_CREATING:
        op_cancel(&own->create.op);
        return;
    case CTR_CREATED: /* never ran: there is no process to signal */
        ctr_log_ended(c, c->cur.attempt);
        ctr_reap(c->pod, c->cur.id, NULL);
        ctr_set_state(c, CTR_NONE);
        return;
    case CTR_RUNNING:
        ctr_stop_begin(c, grace_ns);
        if (c->state == CTR_PRESTOP)
            prestop_step(c);
        return;
    case CTR_PRESTOP:
        if (c->pod->state == POD_TERMINATING && clock_boot_is_before(deadline, own->stop_deadline))
            own->stop_deadline = deadline; /* the grace period was shortened */
        prestop_step(c);
        return;
    case CTR_STOPPING:
        if (clock_boot_is_before(deadline, kill_at))
            deadline = kill_at;
        if (c->pod->state == POD_TERMINATING && clock_boot_is_before(deadline, own->stop_deadline))
            own->stop_deadline = deadline; /* the grace period was shortened */
        ctr_stop_step(c);
        return;
    case CTR_KILLING:
        ctr_stop_step(c);
        return;
    }
}
