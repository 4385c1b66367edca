/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a container: when it may start, its back-off, create and start. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/env_age.h"
#include "agent/pod/container/hooks.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/probes.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/image/images.h"
#include "agent/pod/limits/cpu_memory.h"
#include "agent/pod/placement/placement.h"
#include "agent/pod/project/project.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* kubelet: 10 s, doubled up to 300 s, forgotten after 600 s without a crash \ */
#define BACKOFF_FIRST_MS 10000
#define BACKOFF_RESET_NS (600 * INT64_C(1000000000))
#define CONFIG_RETRY_NS (10 * INT64_C(1000000000))

static void set_waiting_reason(struct ctr *c, const char *reason)
{
    if (str_eq(c->waiting_reason, reason))
        return;
    log_debug("container waits", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
              F_STR("from", c->waiting_reason), F_STR("to", reason));
    snprintf(c->waiting_reason, sizeof(c->waiting_reason), "%s", reason);
}

void ctr_waiting(struct ctr *c, const char *reason, const char *fmt, ...)
{
    va_list ap;
    struct buf b = BUF_INIT(4096);

    set_waiting_reason(c, reason);
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    free(c->waiting_message);
    c->waiting_message = b.n > 0 ? buf_detach(&b) : NULL;
    buf_done(&b);
}

void ctr_waits_no_more(struct ctr *c)
{
    set_waiting_reason(c, "");
    free(take_ptr(&c->waiting_message));
}

/* It ran long enough since its last delay that earlier crashes are forgotten. */
static bool backoff_is_over(const struct ctr *c)
{
    const struct ctr_own *own = own_of(c);

    return own->backoff_ms == 0 || c->cur.ended_at.ns - own->backoff_at.ns > BACKOFF_RESET_NS;
}

struct boot_time ctr_backoff_until(const struct ctr *c)
{
    if (!c->cur.ended || backoff_is_over(c))
        return CLOCK_BOOT_NONE;
    return clock_boot_after(c->cur.ended_at, (int64_t)own_of(c)->backoff_ms * 1000000);
}

static void backoff_next(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    own->backoff_ms = backoff_next_ms(backoff_is_over(c) ? 0 : own->backoff_ms, BACKOFF_FIRST_MS,
                                      c->pod->node->o.backoff_max_ms);
    own->backoff_at = clock_boot();
}

/* ---- start ---- */

void ctr_note_start(struct ctr *c, int64_t started_ns, struct boot_time started_at)
{
    c->cur.started_ns = started_ns != 0 ? started_ns : clock_wall_ns();
    c->cur.started_at = started_at;
    if (c->kind == CTR_REGULAR)
        pod_set_initialized(c->pod, true);
    c->pod->record_dirty = true;
    ctr_log_link(c);
    pod_event(c->pod, c, false, "Started", "Container started");
    log_info("container started", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
             F_STR("containerID", c->cur.id), F_U64("restartCount", c->restarts));
}

static void containers_on_started(struct op *op, const struct err *result)
{
    struct ctr *c = op->owner;
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;
    struct err unknown = { 0 };
    struct rt_state s;

    if (rt_state(p->node->rt, c->cur.id, &s, &unknown) == ERR_OK && s.phase == RT_CREATED &&
        (err_is_shortage(result) || result->sys == EIO))
        unknown = *result; /* the runtime was not called */
    if (unknown.code != ERR_OK) {
        ctr_set_state(c, CTR_CREATED); /* until it is known: ctr_refresh() checks again */
        own->unknown = true;
        pod_look_again(p, &unknown);
        return;
    }
    if (result->code != ERR_OK && s.phase != RT_RUNNING && s.phase != RT_EXITED) {
        if (result->code == ERR_CANCELLED && p->node->closing) {
            ctr_set_state(c, CTR_CREATED);
            return;
        }
        log_warn("cannot start container", F_STR("pod", p->key), F_STR("containerName", c->spec->name),
                 F_ERR(result));
        pod_event(p, c, true, "Failed", "Error: %s", result->text);
        ctr_ended(c, 128, "StartError", result->text, 0);
        pod_wake(p, "container could not be started");
        return;
    }
    ctr_set_state(c, CTR_RUNNING);
    ctr_waits_no_more(c);
    ctr_note_start(c, s.started_ns, clock_boot());
    if (c->spec->post_start != NULL && p->node->closing)
        hook_set_post(c, POST_RUNNING); /* for the next agent */
    else if (c->spec->post_start != NULL)
        hook_post_start(c);
    pod_wake(p, "container started");
}

static void start_now(struct ctr *c)
{
    ctr_set_state(c, CTR_STARTING);
    rt_start_start(&own_of(c)->action, c->pod->node->rt, c->cur.id, containers_on_started, c);
}

/* ---- create ---- */

/* From here on the new instance is the current one, and the one before becomes the last. */
static void adopt_new_instance(struct ctr *c, struct ctr_run *run)
{
    struct ctr_own *own = own_of(c);
    const struct rt_config *config = ctr_run_config(run);
    bool remake =
        c->cur.id[0] != '\0' && !c->cur.ended; /* it was created but never started: same attempt, new id */

    if (!remake && c->cur.id[0] != '\0') {
        if (c->last.id[0] != '\0') { /* its log was removed */
            char path[1024];
            ctr_log_link_path(c, c->last.id, path, sizeof(path));
            fs_remove_quietly(AT_FDCWD, path);
        }
        instance_clear(&c->last);
        c->last = c->cur;
    } else {
        instance_clear(&c->cur);
    }
    c->cur = (struct instance){ .attempt = config->attempt,
                                .created_ns = clock_wall_ns(),
                                .sizes = own->building };
    snprintf(c->cur.id, sizeof(c->cur.id), "%s", config->id);
    snprintf(c->cur.message_file, sizeof(c->cur.message_file), "%s", ctr_run_take_message_file(run));
    c->cur.image_id = strdup(config->image->id);
    c->cur.image_ref = img_repo_digest(c->pod->node->o.images, config->image->id, ctr_run_image(run));
    env_age_forget_run(c);
    own->env_sources = ctr_run_take_env_sources(run);
    own->log_linked = false;
    containers_of(c->pod)->env_look = true; /* its sources may have changed since */
    live_sub_path_begun(c);                 /* so may its volumes */
    c->restarts = config->attempt;
    ctr_set_replace(c,
                    strcmp(ctr_run_image(run), c->spec->image) != 0); /* edited while it was being created */
    ctr_set_again(c, false);
    own->asked = own->recovered = false;
    hook_set_post(c, POST_NONE);
    c->pod->record_dirty = true;
}

static void on_created(struct op *op, const struct err *result)
{
    struct ctr *c = op->owner;
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;
    struct ctr_run *run = take_ptr(&own->run);
    const struct rt_config *config = ctr_run_config(run);
    struct err shown = *result; /* it quotes command and paths with their expanded values */

    ctr_run_redact(run, &shown);
    create_limit_release(c);
    if (result->code == ERR_OK) {
        adopt_new_instance(c, run);
        ctr_set_state(c, CTR_CREATED);
        pod_event(p, c, false, "Created", "Container created");
    } else {
        ctr_set_state(c, CTR_NONE);
        ctr_log_ended(c, config->attempt);
        ctr_reap(p, config->id, config->cgroup_path);
        if (result->code == ERR_CANCELLED || p->node->closing) {
            /* terminating or closing: nothing to report */
        } else if (result->code ==
                   ERR_UNKNOWN) { /* the runtime's message: treated as a run that failed to start */
            int64_t now = clock_wall_ns();
            adopt_new_instance(c, run);
            c->cur.started_ns = now;
            c->cur.started_at = clock_boot();
            pod_event(p, c, false, "Created", "Container created");
            pod_event(p, c, true, "Failed", "Error: %s", shown.text);
            log_warn("cannot create container", F_STR("pod", p->key), F_STR("containerName", c->spec->name),
                     F_ERR(&shown));
            c->cur.ended = true;
            c->cur.exit_code = 128;
            c->cur.finished_ns = now;
            c->cur.ended_at = clock_boot();
            snprintf(c->cur.reason, sizeof(c->cur.reason), "StartError");
            c->cur.message = strdup(shown.text);
        } else {
            bool config_error = result->code == ERR_INVALID || result->code == ERR_PRECONDITION;
            const char *reason = config_error ? "CreateContainerConfigError" : "CreateContainerError";
            if (!str_eq(c->waiting_message, shown.text))
                log_warn("cannot create container", F_STR("pod", p->key),
                         F_STR("containerName", c->spec->name), F_STR("reason", reason), F_ERR(&shown));
            pod_event(p, c, true, "Failed", "Error: %s", shown.text);
            ctr_waiting(c, reason, "%s", shown.text);
            own->retry_at = clock_boot_in_ns(CONFIG_RETRY_NS);
        }
    }
    ctr_run_free(run);
    pod_wake(p, "container created");
}

static void containers_create(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    ctr_set_state(c, CTR_CREATING);
    project_layer_used(c);
    ctr_log_keep(c, ctr_run_config(own->run)->attempt);
    rt_create_start(&own->create, c->pod->node->rt, ctr_run_config(own->run), on_created, c);
}

static void on_subpaths(struct op *op, const struct err *result)
{
    struct ctr *c = op->owner;
    struct ctr_own *own = own_of(c);
    struct err shown = *result;

    if (result->code == ERR_OK && c->pod->state != POD_TERMINATING && !c->pod->node->closing) {
        containers_create(c);
        return;
    }
    if (result->code != ERR_OK && own->subpaths.out.n > 0)
        snprintf(shown.text, sizeof(shown.text), "%s", own->subpaths.out.p);
    ctr_run_redact(own->run, &shown); /* subPathExpr may contain a Secret */
    create_limit_release(c);
    ctr_run_free(take_ptr(&own->run));
    ctr_set_state(c, CTR_NONE);
    if (result->code != ERR_OK && result->code != ERR_CANCELLED) {
        pod_event(c->pod, c, true, "Failed", "Error: %s", shown.text);
        ctr_waiting(c,
                    str_starts(shown.text, IMAGE_VOLUME_FAILED) ? "CreateContainerError"
                                                                : "CreateContainerConfigError",
                    "%s", shown.text);
        own->retry_at = clock_boot_in_ns(CONFIG_RETRY_NS);
    }
    pod_wake(c->pod, "sub paths are mounted");
}

/* Like kubelet, which checks the image before it makes the container's configuration. */
static void tell_present(struct ctr *c, struct pod_image *image)
{
    if (!image->pulled)
        pod_event(c->pod, c, false, "Pulled",
                  "Container image \"%s\" already present on machine and can be accessed by the pod",
                  c->spec->image);
    image->pulled = false;
}

static void not_configured(struct ctr *c, struct pod_image *image, const struct err *e)
{
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;

    if (!str_eq(c->waiting_message, e->text))
        log_warn("cannot configure container", F_STR("pod", p->key), F_STR("containerName", c->spec->name),
                 F_ERR(e));
    tell_present(c, image);
    pod_event(p, c, true, "Failed", "Error: %s", e->text);
    ctr_waiting(
        c, ctr_cdi_failed(e) || ctr_target_failed(e) ? "CreateContainerError" : "CreateContainerConfigError",
        "%s", e->text);
    own->retry_at = clock_boot_in_ns(CONFIG_RETRY_NS);
    pod_wake_at(p, own->retry_at, "create is tried again");
}

/* A place for the create is taken when the devices are prepared: their plugin may take its time. */
static void containers_begin(struct ctr *c, struct pod_image *image)
{
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;
    struct proc_call_spec call = { .name = "mount volumes", .subject = p->key, .deadline_ms = 60000 };
    struct err e = { 0 };
    bool wait;

    if (!project_layer_ready(c))
        return;
    if (!own->devices_prepared) {
        if (devices_pre_start(c, &wait, &e) != ERR_OK) {
            not_configured(c, image, &e);
            return;
        }
        if (wait)
            return;
        own->devices_prepared = true;
    }
    if (!create_limit_take(c))
        return;
    if (ctr_run_build(c, &own->run, &e) != ERR_OK) {
        create_limit_release(c);
        if (ctr_cdi_waits(c, &e))
            return;
        own->devices_prepared = false;                     /* the next start retries */
        if (e.code == ERR_PRECONDITION && pod_is_new(p)) { /* its file may be read next: no event yet */
            own->retry_at = pod_new_until(p);
            pod_wake_at(p, own->retry_at, "create is tried again");
            return;
        }
        not_configured(c, image, &e);
        return;
    }
    own->devices_prepared = false;
    own->building = cpu_memory_of_container(c);
    if (c->cur.ended && !own->asked)
        backoff_next(c);
    tell_present(c, image);
    call.cgroup_fd = cg_leaf_fd(p->node->o.cgroups, CG_LEAF_OPS);
    call.cgroup_procs = cg_leaf_procs(p->node->o.cgroups, CG_LEAF_OPS);
    call.moves_late = true;
    if (ctr_run_subpaths(own->run, &call)) {
        ctr_set_state(c, CTR_MOUNTING);
        proc_call_start(&own->subpaths, &call, p->node->o.loop, on_subpaths, c);
        return;
    }
    containers_create(c);
}

const struct cpu_memory *ctr_building(const struct ctr *c)
{
    return &own_of(c)->building;
}

static bool env_needs_pod_ip(const struct api_container *spec)
{
    for (size_t i = 0; i < spec->n_env; i++)
        if (spec->env[i].field_ref != NULL && str_starts(spec->env[i].field_ref->field_path, "status.podIP"))
            return true;
    return false;
}

static void try_create(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;
    struct boot_time until = own->asked ? CLOCK_BOOT_NONE : ctr_backoff_until(c);
    const struct pod_image *missing;

    if (!ctr_restart_wanted(c))
        return;
    if (!clock_boot_is_due(until)) {
        if (!str_eq(c->waiting_reason, "CrashLoopBackOff"))
            pod_event(p, c, true, "BackOff", "Back-off restarting failed container %s in pod %s_%s(%s)",
                      c->spec->name, p->api->meta.name, p->api->meta.namespace, p->uid);
        ctr_waiting(c, "CrashLoopBackOff", "back-off %s restarting failed container=%s pod=%s_%s(%s)",
                    duration_format_ms(own->backoff_ms).s, c->spec->name, p->api->meta.name,
                    p->api->meta.namespace, p->uid);
        pod_wake_at(p, until, "back-off is over");
        return;
    }
    if (!clock_boot_is_due(own->retry_at)) {
        pod_wake_at(p, own->retry_at, "create is tried again");
        return;
    }
    if (!volumes_ready(p) || !sandbox_pinned(p) || !pidns_ready(p) ||
        (sandbox_net(p) != NET_READY && env_needs_pod_ip(c->spec)))
        return; /* each of them wakes the pod */
    if (!images_ready(c, &missing)) {
        if (missing != NULL && missing->reason[0] != '\0')
            ctr_waiting(c, missing->reason, "%s", missing->message != NULL ? missing->message : "");
        return;
    }
    containers_begin(c, images_find(p, c->spec->image));
}

static int64_t replace_grace_ns(const struct pod *p)
{
    int64_t seconds = p->api->spec.termination_grace_seconds;

    return (seconds < 0                   ? 1
            : seconds > GRACE_MAX_SECONDS ? GRACE_MAX_SECONDS
                                          : seconds) *
           INT64_C(1000000000);
}

static bool probe_failed(const struct ctr *c)
{
    return probes_result(c, PROBE_LIVENESS) == RESULT_FAILURE ||
           probes_result(c, PROBE_STARTUP) == RESULT_FAILURE;
}

/* No other container of the pod runs or will run: kubelet then ends the pod, with its own message and grace
 * period. */
static bool is_last_one(const struct ctr *c)
{
    const struct pod *p = c->pod;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *o = p->ctrs[i];
        if (o != c && o->kind == CTR_REGULAR &&
            (o->state == CTR_NONE ? ctr_restart_wanted(o) : !probe_failed(o)))
            return false;
    }
    return true;
}

static void stop_for_probe(struct ctr *c, enum probe_type t)
{
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;
    const struct api_probe *spec = probes_spec(c, t);
    const char *what = t == PROBE_STARTUP ? "startup" : "liveness";
    int64_t grace_ns = replace_grace_ns(p);
    struct probe_view v;

    instance_add_why(&c->cur, "%s probe failed: %s", what, probes_view(c, t, &v) ? v.last_text : "");
    ctr_set_again(c, ctr_policy(c) != API_RESTART_NEVER);
    if (c->again || !is_last_one(c)) {
        snprintf(own->stop_text, sizeof(own->stop_text), "%s %s failed %s probe%s",
                 c->kind == CTR_SIDECAR ? "Init container" : "Container", c->spec->name, what,
                 c->again && c->kind == CTR_REGULAR ? ", will be restarted" : "");
        if (spec->has_termination_grace && spec->termination_grace_seconds <= GRACE_MAX_SECONDS)
            grace_ns = spec->termination_grace_seconds * INT64_C(1000000000);
    }
    p->record_dirty = true;
    log_warn("killing a container because of its probe", F_STR("pod", p->key),
             F_STR("containerName", c->spec->name), F_STR("probeType", probe_type_name(t)));
    ctr_stop(c, grace_ns);
}

static void running_step(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    if (own->post == POST_RUNNING) {
        if (own->hook == NULL) /* the agent was restarted meanwhile: run it at least once */
            hook_post_start(c);
        return;
    }
    if (own->post == POST_FAILED) {
        snprintf(own->stop_text, sizeof(own->stop_text), "FailedPostStartHook");
        ctr_stop(c, replace_grace_ns(c->pod));
    } else if (c->replace) {
        ctr_stop(c, replace_grace_ns(c->pod));
    } else if (own->asked) {
        snprintf(own->stop_text, sizeof(own->stop_text), "Container %s will be restarted, as requested",
                 c->spec->name);
        ctr_stop(c, replace_grace_ns(c->pod));
    } else if (probes_result(c, PROBE_LIVENESS) == RESULT_FAILURE) {
        stop_for_probe(c, PROBE_LIVENESS);
    } else if (probes_result(c, PROBE_STARTUP) == RESULT_FAILURE) {
        stop_for_probe(c, PROBE_STARTUP);
    }
}

bool ctr_holds_others(const struct ctr *c)
{
    const struct ctr_own *own = own_of(c);

    if (c->spec->post_start == NULL)
        return false;
    switch (c->state) {
    case CTR_NONE: /* it is about to start, with no known obstacle */
        return c->waiting_reason[0] == '\0' && ctr_restart_wanted(c) && own->hook == NULL;
    case CTR_MOUNTING:
    case CTR_CREATING:
    case CTR_CREATED:
    case CTR_STARTING:
        return true;
    case CTR_RUNNING:
        return own->post == POST_RUNNING;
    case CTR_PRESTOP:
    case CTR_STOPPING:
    case CTR_KILLING:
        return false;
    }
    return false;
}

void ctr_step(struct ctr *c)
{
    struct pod *p = c->pod;

    ctr_log_link(c);
    switch (c->state) {
    case CTR_NONE:
        if (!hook_live(c)) /* of the previous run */
            try_create(c);
        return;
    case CTR_CREATED:
        if (!sandbox_ready(p) || !p->record_durable || !devices_durable(p) || !placement_durable(p))
            return;
        if (own_of(c)->unknown)
            return; /* it may have been started; the next check wakes the pod */
        if (pod_record_awaited(p))
            pod_wake(p, "record is written before the start"); /* a later agent must find its owner: create
                                                                  it once the record names it */
        else
            start_now(c);
        return;
    case CTR_RUNNING:
        running_step(c);
        return;
    case CTR_PRESTOP:
    case CTR_STOPPING:
    case CTR_KILLING:
        ctr_stop_step(c);
        return;
    case CTR_MOUNTING:
    case CTR_CREATING:
    case CTR_STARTING:
        return;
    }
}

void containers_config_changed(struct pod *p, enum api_config_kind kind, const char *name)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];

        containers_of(p)->env_look = containers_of(p)->env_look || env_age_uses(c->spec, kind, name);
        if (pod_is_new(p) || str_eq(c->waiting_reason, "CreateContainerConfigError"))
            own_of(c)->retry_at = CLOCK_BOOT_NONE;
    }
}

void containers_services_known(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (pod_is_new(p) || str_eq(p->ctrs[i]->waiting_reason, "CreateContainerConfigError"))
            own_of(p->ctrs[i])->retry_at = CLOCK_BOOT_NONE;
}
