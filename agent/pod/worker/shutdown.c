/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/worker/shutdown.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/image/images.h"
#include "agent/pod/worker/internal.h"
#include "agent/pod/worker/worker.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"

#include <fcntl.h>
#include <string.h>

/* kubelet's words (pkg/kubelet/nodeshutdown/nodeshutdown_manager.go). */
#define ENDED_REASON "Terminated"
#define ENDED_TEXT "Pod was terminated in response to imminent node shutdown."
#define FILE_NAME "graceful_node_shutdown_state" /* kubelet's name for the same thing */
#define FILE_MAX 4096

bool shutdown_is_on(const struct node *n)
{
    return n->o.n_shutdown_groups > 0;
}

static const char *shutdown_state_name(enum shutdown_state s)
{
    switch (s) {
    case SHUTDOWN_UNKNOWN:
        return "unknown";
    case SHUTDOWN_NO:
        return "no";
    case SHUTDOWN_ENDING:
        return "ending pods";
    case SHUTDOWN_DONE:
        return "done";
    }
    return "?";
}

static void shutdown_set_state(struct node *n, enum shutdown_state state)
{
    struct shutdown *s = &worker_node(n)->shutdown;

    if (s->state == state)
        return;
    log_debug("shutdown state", F_STR("from", shutdown_state_name(s->state)),
              F_STR("to", shutdown_state_name(state)));
    s->state = state;
    n->shutting_down = state == SHUTDOWN_ENDING || state == SHUTDOWN_DONE;
}

/* ---- the record of the last one ---- */

static void shutdown_save(const struct node *n, int64_t ended_ns)
{
    const struct shutdown *s = &worker_node(n)->shutdown;
    json_auto_t *o = json_object();
    char started[CLOCK_RFC3339_SIZE], ended[CLOCK_RFC3339_SIZE];
    struct err e = { 0 };

    clock_format_nano(s->started_ns, started);
    json_put_str(o, "bootID", n->boot_id);
    json_put_str(o, "startTime", started);
    if (ended_ns != 0) {
        clock_format_nano(ended_ns, ended);
        json_put_str(o, "endTime", ended);
        json_object_set_new(o, "ended", json_integer(s->n_ended));
        json_object_set_new(o, "late", json_integer(s->n_late));
    }
    str_auto text = json_text(o);
    str_auto path = str_printf("%s/" FILE_NAME, n->o.state_dir);
    if (text == NULL || path == NULL)
        err_nomem(&e);
    else if (fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, true, &e) == ERR_OK)
        return;
    log_warn("cannot record the shutdown", F_ERR(&e));
}

static int64_t shutdown_time_of(const json_t *o, const char *key)
{
    const char *text = json_str(o, key);
    int64_t ns = 0;

    return text != NULL && clock_parse(text, &ns, ERR_IGNORED) == ERR_OK ? ns : 0;
}

static unsigned count_of(const json_t *o, const char *key)
{
    json_int_t v = json_int(o, key, 0);

    return v > 0 && v < NODE_PODS_MAX ? (unsigned)v : 0;
}

static enum err_code shutdown_read_last(struct node *n, struct err *e)
{
    struct shutdown *s = &worker_node(n)->shutdown;
    str_auto path = str_printf("%s/" FILE_NAME, n->o.state_dir);
    str_auto text = NULL;
    json_auto_t *o = NULL;
    struct presence found;
    size_t size = 0;

    if (path == NULL)
        return err_nomem(e);
    found = fs_read_if_there(AT_FDCWD, path, FILE_MAX, &text, &size, e);
    if (presence_is_unknown(found) ||
        (!presence_is_absent(found) &&
         json_parse(text, size, FILE_MAX, &o, "shutdown record", e) == ERR_EXHAUSTED))
        return e->code;
    if (e->code != ERR_OK)
        log_warn("the record of the last shutdown is damaged", F_STR("path", path), F_ERR(e));
    *e = (struct err){ 0 };
    if (o == NULL)
        return ERR_OK;
    s->last_started_ns = shutdown_time_of(o, "startTime");
    s->last_ended_ns = shutdown_time_of(o, "endTime");
    s->last_ended = count_of(o, "ended");
    s->last_late = count_of(o, "late");
    s->last_is_of_this_boot = str_eq(json_str(o, "bootID"), n->boot_id);
    return ERR_OK;
}

/* Returns true when the last shutdown's record was read or does not exist. */
static bool shutdown_look_at_last(struct node *n)
{
    struct worker_node *part = worker_node(n);
    struct err e = { 0 };

    if (shutdown_read_last(n, &e) == ERR_OK)
        part->shutdown.last_unread[0] = '\0';
    else
        snprintf(part->shutdown.last_unread, sizeof(part->shutdown.last_unread), "%s", e.text);
    return e.code == ERR_OK;
}

void shutdown_open(struct node *n)
{
    struct shutdown *s = &worker_node(n)->shutdown;
    struct patience patience = { 0 };

    uv_timer_init(n->o.loop, &s->timer);
    s->timer.data = n;
    shutdown_set_state(n, shutdown_is_on(n) ? SHUTDOWN_UNKNOWN : SHUTDOWN_NO);
    while (!shutdown_look_at_last(n) && patience_wait(&patience)) {
    }
    if (s->last_unread[0] != '\0')
        log_warn("cannot read the record of the last shutdown; will retry when the next begins",
                 F_STR("err", s->last_unread));
}

/* ---- ending, group by group ---- */

static size_t group_of(const struct node *n, const struct pod *p)
{
    return shutdown_plan_find(n->o.shutdown_groups, n->o.n_shutdown_groups, p->priority);
}

static bool is_active(const struct pod *p)
{
    return p->state == POD_STARTING || p->state == POD_RUNNING || p->state == POD_TERMINATING;
}

static unsigned group_left(const struct node *n)
{
    unsigned left = 0;

    pods_each (n, p)
        left += is_active(p) && group_of(n, p) == worker_node(n)->shutdown.group;
    return left;
}

static void end_pod(struct pod *p, const struct node_shutdown_group *g)
{
    int64_t grace = shutdown_plan_grace(g, p->api->spec.termination_grace_seconds);

    if (p->state == POD_TERMINATING) { /* already ending: only its grace period may become shorter */
        pod_begin_termination(p, grace, p->finishing, "");
        pod_wake(p, "the machine shuts down");
        return;
    }
    p->shutdown_ns = clock_wall_ns();
    snprintf(p->phase, sizeof(p->phase), "Failed");
    snprintf(p->reason, sizeof(p->reason), ENDED_REASON);
    free(p->message);
    p->message = strdup(ENDED_TEXT);
    for (size_t i = 0; i < p->n_ctrs; i++) { /* a job that exits with 0 at SIGTERM is not complete */
        struct ctr *c = p->ctrs[i];
        if (c->state != CTR_NONE && ctr_policy(c) != API_RESTART_NEVER)
            ctr_set_again(c, true);
    }
    pod_event(p, NULL, false, "NodeShutdown", ENDED_TEXT);
    pod_begin_termination(p, grace, true, "the machine is shutting down");
    pod_wake(p, "the machine shuts down");
}

static void shutdown_finish(struct node *n)
{
    struct shutdown *s = &worker_node(n)->shutdown;

    shutdown_set_state(n, SHUTDOWN_DONE);
    uv_timer_stop(&s->timer);
    s->last_started_ns = s->started_ns;
    s->last_ended_ns = clock_wall_ns();
    s->last_ended = s->n_ended;
    s->last_late = s->n_late;
    shutdown_save(n, s->last_ended_ns);
    log_info("pods have ended; the machine may go down", F_U64("pods", s->n_ended), F_U64("late", s->n_late),
             F_I64("tookMs", (s->last_ended_ns - s->started_ns) / 1000000));
    s->done(s->done_arg);
}

static void shutdown_on_timer(uv_timer_t *timer);

/* Begins with s->group, or with the next group that has pods. */
static void begin_group(struct node *n)
{
    struct shutdown *s = &worker_node(n)->shutdown;

    for (; s->group < n->o.n_shutdown_groups; s->group++) {
        const struct node_shutdown_group *g = &n->o.shutdown_groups[s->group];
        unsigned pods = group_left(n);

        if (pods == 0)
            continue;
        log_info("ending the pods of a priority", F_I64("priority", g->priority), F_U64("pods", pods),
                 F_U64("graceSeconds", g->grace_ms / 1000));
        s->n_ended += pods;
        pods_each (n, p)
            if (is_active(p) && group_of(n, p) == s->group)
                end_pod(p, g);
        s->until_ms = clock_mono_ms() + shutdown_plan_wait_ms(g);
        uv_timer_start(&s->timer, shutdown_on_timer, shutdown_plan_wait_ms(g), 0);
        return;
    }
    shutdown_finish(n);
}

static void shutdown_on_timer(uv_timer_t *timer)
{
    struct node *n = timer->data;
    struct worker_node *part = worker_node(n);

    if (n->closing)
        return;
    pods_each (n, p)
        if (is_active(p) && group_of(n, p) == part->shutdown.group) {
            part->shutdown.n_late++;
            log_warn("pod has exceeded the shutdown grace period of its priority", F_STR("pod", p->key),
                     F_STR("podUID", p->uid), F_STR("state", pod_state_name(p->state)));
        }
    part->shutdown.group++;
    begin_group(n);
}

void shutdown_step(struct node *n)
{
    struct worker_node *part = worker_node(n);

    if (part->shutdown.state != SHUTDOWN_ENDING || n->closing || group_left(n) > 0)
        return;
    part->shutdown.group++;
    begin_group(n);
}

void node_shutdown_begin(struct node *n, void (*done)(void *arg), void *arg)
{
    struct shutdown *s = &worker_node(n)->shutdown;

    if (n->closing || !shutdown_is_on(n))
        return;
    s->done = done;
    s->done_arg = arg;
    if (s->state == SHUTDOWN_ENDING)
        return;
    if (s->state == SHUTDOWN_DONE) { /* a repeated call, after the lock's holder was restarted */
        done(arg);
        return;
    }
    if (s->last_unread[0] != '\0')
        ERR_IGNORE(shutdown_look_at_last(n)); /* a failure must not delay the shutdown */
    s->group = 0;
    s->n_ended = s->n_late = 0;
    s->started_ns = clock_wall_ns();
    if (s->state == SHUTDOWN_UNKNOWN &&
        s->last_is_of_this_boot) { /* the agent was restarted during this shutdown */
        s->started_ns = s->last_started_ns;
        s->n_ended = s->last_ended;
        s->n_late = s->last_late;
    }
    shutdown_set_state(n, SHUTDOWN_ENDING);
    log_info(
        "the machine is shutting down: ending pods by priority",
        F_U64("atMostSeconds", shutdown_plan_total_ms(n->o.shutdown_groups, n->o.n_shutdown_groups) / 1000));
    node_event(n, false, "NodeShutdown", "Shutdown manager detected shutdown event");
    node_ask_ready(n);
    shutdown_save(n, 0);
    pods_wake_pending(n, "the machine shuts down"); /* so that they are rejected */
    begin_group(n);
}

void node_shutdown_cancel(struct node *n)
{
    struct shutdown *s = &worker_node(n)->shutdown;
    bool was = shutdown_now(n);

    if (s->state == SHUTDOWN_NO)
        return;
    shutdown_set_state(n, SHUTDOWN_NO);
    uv_timer_stop(&s->timer);
    if (was) {
        log_info("the shutdown was cancelled: starting pods again");
        node_event(n, false, "NodeShutdown", "Shutdown manager detected shutdown cancellation");
        node_ask_ready(n);
    }
    pods_each (n, p)
        if (p->shutdown_ns != 0)
            pod_wake(p, "shutdown was called off");
}

void node_shutdown_inhibitor(struct node *n, bool failed, const char *text)
{
    struct worker_node *part = worker_node(n);

    part->shutdown.inhibitor_failed = failed;
    snprintf(part->shutdown.inhibitor, sizeof(part->shutdown.inhibitor), "%s", text);
    if (failed && part->shutdown.state == SHUTDOWN_UNKNOWN)
        node_shutdown_cancel(n); /* logind cannot be asked, so assume that there is no shutdown */
}

/* ---- and again ---- */

/* The pod starts again in place, as after any reboot, so it keeps the content of its emptyDirs. */
bool shutdown_keeps_volumes(const struct pod *p)
{
    return p->shutdown_ns != 0 && p->wanted && p->successor == NULL && pod_runs_again(p);
}

bool shutdown_revive(struct pod *p)
{
    struct node *n = p->node;
    struct worker_node *part = worker_node(n);
    struct err e = { 0 };
    char when[CLOCK_RFC3339_SIZE];

    if (p->shutdown_ns == 0 || !n->sources_ready || n->closing || n->draining || !p->wanted ||
        p->successor != NULL || !pod_idle(p) || !pod_runs_again(p))
        return false;
    if (part->shutdown.state != SHUTDOWN_NO && !(part->shutdown.state == SHUTDOWN_UNKNOWN && p->rebooted))
        return false;
    images_clear(p);
    if (images_build(p, &e) != ERR_OK) {
        log_error("cannot start a pod again; will retry", F_STR("pod", p->key), F_ERR(&e));
        pod_wake_at(p, clock_boot_in_ms(1000), "start after a shutdown is tried again");
        return false;
    }
    clock_format_s(p->shutdown_ns, when);
    log_info("starting a pod again that was ended by a shutdown", F_STR("pod", p->key),
             F_STR("podUID", p->uid), F_STR("endedAt", when), F_STR("phase", p->phase),
             F_STR("reason", p->reason));
    pod_event(p, NULL, false, "NodeShutdown", "Starting the pod again after the shutdown of %s", when);
    rooms_reset_pod(p);
    p->cgroup_made = false;
    if (p->rejected)
        p->start_time_ns = 0;
    p->shutdown_ns = 0;
    p->phase[0] = p->reason[0] = '\0';
    free(take_ptr(&p->message));
    p->rejected = p->admitted = p->finishing = false;
    p->grace_seconds = 0;
    pod_set_state(p, POD_PENDING);
    return true;
}

/* ---- for people ---- */

static void explain_groups(const struct node *n, struct buf *b)
{
    const struct worker_node *part = worker_node(n);

    buf_addf(b, "%s; pods end",
             part->shutdown.inhibitor[0] != '\0' ? part->shutdown.inhibitor : "being requested");
    for (size_t i = 0; i < n->o.n_shutdown_groups; i++)
        buf_addf(b, "%s from priority %d within %llus", i > 0 ? ", then" : "",
                 n->o.shutdown_groups[i].priority,
                 (unsigned long long)(n->o.shutdown_groups[i].grace_ms / 1000));
}

static void explain_last(const struct shutdown *s, json_t *steps)
{
    buf_auto b = BUF_INIT(256);

    if (s->last_ended_ns != 0)
        buf_addf(&b, "%u pods ended within %llds", s->last_ended,
                 (long long)((s->last_ended_ns - s->last_started_ns) / 1000000000));
    else
        buf_adds(&b, "was interrupted before all pods had ended");
    if (s->last_late > 0)
        buf_addf(&b, ", %u outlived their time", s->last_late);
    explain_step(steps, "last shutdown", s->last_ended_ns != 0 && s->last_late == 0 ? "done" : "failed",
                 s->last_started_ns, b.p, 0);
}

void shutdown_explain(const struct node *n, json_t *steps)
{
    const struct shutdown *s = &worker_node(n)->shutdown;
    buf_auto b = BUF_INIT(4096);

    if (shutdown_is_on(n)) {
        explain_groups(n, &b);
        explain_step(steps, "shutdown inhibitor",
                     s->inhibitor_failed       ? "failed"
                     : s->inhibitor[0] != '\0' ? "done"
                                               : "running",
                     0, b.p, 0);
    }
    buf_reset(&b);
    if (s->state == SHUTDOWN_ENDING) {
        uint64_t now = clock_mono_ms();
        buf_addf(&b, "%u pods from priority %d are ending, %llus at most", group_left(n),
                 n->o.shutdown_groups[s->group].priority,
                 (unsigned long long)(s->until_ms > now ? (s->until_ms - now) / 1000 : 0));
        explain_step(steps, "shutdown", "running", s->started_ns, b.p, 0);
    } else if (s->state == SHUTDOWN_DONE) {
        explain_step(steps, "shutdown", "done", s->started_ns, "pods have ended; the machine may go down", 0);
    }
    if (s->last_unread[0] != '\0')
        explain_step(steps, "last shutdown", "failed", 0, s->last_unread, 0);
    else if (s->last_started_ns != 0 && !shutdown_now(n))
        explain_last(s, steps);
}

void shutdown_explain_pod(const struct pod *p, json_t *steps)
{
    if (p->shutdown_ns == 0 || p->state != POD_TERMINATED)
        return;
    if (pod_runs_again(p))
        explain_step(steps, "shutdown", "waiting", p->shutdown_ns,
                     "starts again when no shutdown is in progress", 0);
    else
        explain_step(steps, "shutdown", "done", p->shutdown_ns,
                     "ended by it; restartPolicy Never: does not run again", 0);
}

void shutdown_metrics(const struct node *n, struct buf *out)
{
    const struct shutdown *s = &worker_node(n)->shutdown;
    int64_t start = shutdown_now(n) ? s->started_ns : s->last_started_ns;
    int64_t end = s->state == SHUTDOWN_ENDING ? 0 : s->last_ended_ns;

    buf_addf(out,
             "# HELP coracle_graceful_shutdown_start_time_seconds Last graceful shutdown start time since "
             "unix epoch in seconds\n# TYPE coracle_graceful_shutdown_start_time_seconds gauge\n"
             "coracle_graceful_shutdown_start_time_seconds %lld\n",
             (long long)(start / 1000000000));
    buf_addf(out,
             "# HELP coracle_graceful_shutdown_end_time_seconds Last graceful shutdown end time since unix "
             "epoch in seconds\n# TYPE coracle_graceful_shutdown_end_time_seconds gauge\n"
             "coracle_graceful_shutdown_end_time_seconds %lld\n",
             (long long)(end / 1000000000));
}
