/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/container/hooks.h"

#include "agent/pod/container/container.h"
#include "agent/pod/container/handler_resolve.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/probe/text.h"
#include "agent/runtime/exec.h"
#include "base/codec/go_quote.h"
#include "base/log.h"

#include <string.h>
#include <strings.h>

#define OUTPUT_MAX (10 * 1024)      /* of an exec hook, as of an exec probe */
#define WHY_MAX (OUTPUT_MAX + 8192) /* that, and the command */
#define QUOTED_MAX (4 * OUTPUT_MAX) /* each byte as \x00 */

enum hook_part { PART_HANDLER, PART_FALLBACK }; /* httpGet: HTTPS first, then plain */

struct hook {
    struct op op;
    struct ctr *c;
    bool pre_stop, over, ended; /* ended: the container ended before the hook */
    enum hook_part part;
    struct rt_exec exec;
    struct probe_check check;
    uv_timer_t timer;
    bool timer_open;
    char *why;          /* the handler's error message, in kubelet's words */
    char *said;         /* exit code and output, or the error alone */
    struct arena arena; /* of the handler's specification */
    char address[320];  /* for the fallback's event */
};

bool hook_live(const struct ctr *c)
{
    return own_of(c)->hook != NULL;
}

static const char *hook_post_name(enum ctr_post post)
{
    switch (post) {
    case POST_NONE:
        return "none";
    case POST_RUNNING:
        return "running";
    case POST_FAILED:
        return "failed";
    }
    return "?";
}

void hook_set_post(struct ctr *c, enum ctr_post post)
{
    struct ctr_own *own = own_of(c);

    if (own->post == post)
        return;
    log_debug("postStart hook", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
              F_STR("from", hook_post_name(own->post)), F_STR("to", hook_post_name(post)));
    own->post = post;
    c->pod->record_dirty = true;
}

static const struct api_handler *handler_of(const struct hook *h)
{
    return h->pre_stop ? h->c->spec->pre_stop : h->c->spec->post_start;
}

/* ---- its end ---- */

static void post_start_over(struct ctr *c, bool failed, bool ended, const char *why, const char *said)
{
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;

    if (own->post != POST_RUNNING)
        return;
    hook_set_post(c, POST_NONE);
    p->record_dirty = true;
    if (!failed)
        return;
    if (ended) {
        if (ctr_restart_wanted(c))
            ctr_waiting(c, "PostStartHookError", "%s", why != NULL ? why : "");
    } else {
        free(own->post_message);
        own->post_message = why != NULL ? strdup(why) : NULL;
        hook_set_post(c, POST_FAILED);
    }
    /* As in kubelet, the message has no output of the handler's server or command. */
    pod_event_detail(p, c, true, "FailedPostStartHook", "PostStartHook failed", said);
    log_warn("postStart hook failed: killing the container", F_STR("pod", p->key),
             F_STR("containerName", c->spec->name));
    log_debug("postStart hook failed", F_STR("pod", p->key), F_STR("err", why));
}

/* For explain, with the output. */
static void note_failure(struct hook *h, const char *result)
{
    instance_add_why(&h->c->cur, "%s hook failed: %s", h->pre_stop ? "preStop" : "postStart",
                     h->said != NULL  ? h->said
                     : h->why != NULL ? h->why
                                      : result);
    h->c->pod->record_dirty = true;
}

static void hooks_on_over(struct op *op, const struct err *result)
{
    struct hook *h = container_of(op, struct hook, op);
    struct ctr *c = h->c;
    struct pod *p = c->pod;
    /* A sleep does not need its container. */
    bool stopped = result->code == ERR_CANCELLED && (!h->ended || handler_of(h)->kind == API_HANDLER_SLEEP),
         failed = result->code != ERR_OK && !stopped;

    own_of(c)->hook = NULL;
    if (failed && !p->node->closing)
        note_failure(h, result->text);
    /* The grace period is over: kubelet notices when the killed container ends the handler. */
    if (h->pre_stop && result->code != ERR_OK && handler_of(h)->kind != API_HANDLER_SLEEP &&
        !p->node->closing) {
        pod_event_detail(p, c, true, "FailedPreStopHook", "PreStopHook failed", h->said);
        log_debug("preStop hook failed", F_STR("pod", p->key), F_STR("containerName", c->spec->name),
                  F_STR("err", h->why != NULL ? h->why : result->text));
    }
    if (!h->pre_stop && !p->node->closing)
        post_start_over(c, failed, h->ended, h->why, h->said);
    arena_done(&h->arena);
    free(h->why);
    free(h->said);
    free(h);
    pod_wake(p, "hook ended");
}

static void hooks_finish(struct hook *h, const struct err *e)
{
    if (h->over)
        return;
    h->over = true;
    if (h->timer_open) {
        h->timer_open = false;
        op_close_handle(&h->op, (uv_handle_t *)&h->timer);
    }
    op_finish(&h->op, e);
}

/* kubelet's text around the error. */
static void hooks_fail(struct hook *h, const char *prefix, const char *why, const char *suffix)
{
    const struct pod *p = h->c->pod;
    struct err e = { 0 };

    free(h->why);
    h->why = str_printf("%s for Container \"%s\" in Pod \"%s_%s(%s)\" failed - error: %s%s", prefix,
                        h->c->spec->name, p->api->meta.name, p->api->meta.namespace, p->uid, why, suffix);
    err_set(&e, ERR_UNKNOWN, "%s hook failed", h->pre_stop ? "preStop" : "postStart");
    hooks_finish(h, &e);
}

/* ---- exec ---- */

static void hooks_on_exec(struct op *op, const struct err *result)
{
    struct hook *h = op->owner;
    const char *const *argv = NULL;
    buf_auto command = BUF_INIT(4096), prefix = BUF_INIT(5000), why = BUF_INIT(WHY_MAX),
             said = BUF_INIT(OUTPUT_MAX + 8), suffix = BUF_INIT(QUOTED_MAX + 64);
    struct err e = { 0 };

    if (result->code == ERR_OK && h->exec.exit_code == 0) {
        hooks_finish(h, NULL);
    } else {
        if (handler_resolve_command(h->c, handler_of(h), false, &h->arena, &argv, &e) == ERR_OK)
            handler_resolve_add_command(argv, &command);
        probe_add_utf8(&said, h->exec.output.p != NULL ? h->exec.output.p : "", h->exec.output.n, OUTPUT_MAX);
        buf_addf(&prefix, "Exec lifecycle hook ([%s])", command.p);
        if (result->code == ERR_OK)
            buf_addf(&why, "command '%s' exited with %d: %s", command.p, h->exec.exit_code, said.p);
        else
            buf_adds(&why, result->text);
        h->said = result->code == ERR_OK ? str_printf("exit code %d: %s", h->exec.exit_code, said.p)
                                         : strdup(result->text);
        buf_adds(&suffix, ", message: ");
        go_quote(&suffix, said.p, said.n);
        hooks_fail(h, prefix.p, why.p, suffix.p);
    }
    if (h->exec.output.p != NULL)
        buf_done(&h->exec.output);
}

static void hooks_start_exec(struct hook *h, struct err *e)
{
    struct rt_exec_spec spec = {
        .id = h->c->cur.id, .output_max = OUTPUT_MAX, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1
    };

    if (handler_resolve_command(h->c, handler_of(h), false, &h->arena, &spec.argv, e) == ERR_OK)
        rt_exec_start(&h->exec, h->c->pod->node->rt, &spec, hooks_on_exec, h);
}

/* ---- httpGet ---- */

static void start_http(struct hook *h, struct err *e);

static void on_http(struct op *op, const struct err *result)
{
    struct hook *h = op->owner;
    buf_auto prefix = BUF_INIT(5000), why = BUF_INIT(2048);
    struct err e = { 0 };

    if (result->code == ERR_OK && h->check.status > 0) { /* any response is a success */
        if (h->part == PART_FALLBACK)
            pod_event(h->c->pod, NULL, true, "LifecycleHTTPFallback",
                      "request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded",
                      h->address);
        hooks_finish(h, NULL);
    } else if (h->check.plain_http && h->part == PART_HANDLER && h->op.why.code == ERR_OK) {
        h->part = PART_FALLBACK;
        buf_done(&h->check.text);
        start_http(h, &e);
        if (e.code != ERR_OK)
            hooks_finish(h, &e);
        return;
    } else {
        buf_addf(&prefix, "HTTP lifecycle hook (%s)", handler_of(h)->path);
        probe_add_utf8(&why, result->code == ERR_OK ? h->check.text.p : result->text,
                       strlen(result->code == ERR_OK ? h->check.text.p : result->text), 2000);
        h->said = strdup(why.p);
        hooks_fail(h, prefix.p, why.p, "");
    }
    buf_done(&h->check.text);
}

static void start_http(struct hook *h, struct err *e)
{
    struct probe_world w = handler_resolve_world(h->c->pod);
    struct probe_http spec;
    buf_auto address = BUF_INIT(sizeof(h->address) - 1);

    if (handler_resolve_http(h->c, handler_of(h), HANDLER_HOOK_AGENT, &h->arena, &spec, e) != ERR_OK)
        return;
    spec.any_host = true;
    if (h->part == PART_FALLBACK) {
        struct probe_header *headers = (struct probe_header *)(uintptr_t)spec.headers; /* the arena's */
        size_t n = 0;
        for (size_t i = 0; i < spec.n_headers; i++)
            if (strcasecmp(headers[i].name, "Authorization") != 0)
                headers[n++] = headers[i];
        spec.n_headers = n;
        spec.https = false;
    }
    probe_add_address(&address, spec.host, spec.port);
    snprintf(h->address, sizeof(h->address), "%s", address.p);
    probe_http_start(&h->check, &w, &spec, h->c->pod->key, 0, on_http, h);
}

/* ---- the hook ---- */

static void on_slept(uv_timer_t *timer)
{
    hooks_finish(container_of(timer, struct hook, timer), NULL);
}

static void hooks_on_abort(struct op *op)
{
    struct hook *h = container_of(op, struct hook, op);

    if (op_live(&h->exec.op))
        op_cancel(&h->exec.op);
    else if (op_live(&h->check.op))
        op_cancel(&h->check.op);
    else
        hooks_finish(h, NULL);
}

static void start_handler(struct hook *h, struct err *e)
{
    const struct api_handler *handler = handler_of(h);

    switch (handler->kind) {
    case API_HANDLER_EXEC:
        hooks_start_exec(h, e);
        return;
    case API_HANDLER_HTTP:
        start_http(h, e);
        return;
    case API_HANDLER_SLEEP:
        uv_timer_init(h->op.loop, &h->timer);
        h->timer_open = true;
        uv_update_time(h->op.loop);
        uv_timer_start(&h->timer, on_slept, (uint64_t)handler->sleep_seconds * 1000, 0);
        return;
    case API_HANDLER_TCP: /* valid in a manifest, but never run */
    case API_HANDLER_GRPC:
    case API_HANDLER_NONE:
        err_set(e, ERR_INVALID, "Cannot run handler: invalid handler");
        return;
    }
}

static void hooks_begin(struct ctr *c, bool pre_stop, uint64_t deadline_ms)
{
    struct hook *h = calloc(1, sizeof(*h));
    struct err e = { 0 };

    if (h == NULL) { /* as if it failed immediately */
        pod_event(c->pod, c, true, pre_stop ? "FailedPreStopHook" : "FailedPostStartHook",
                  pre_stop ? "PreStopHook failed" : "PostStartHook failed");
        pod_wake(c->pod, "hook could not begin");
        return;
    }
    h->c = c;
    h->pre_stop = pre_stop;
    own_of(c)->hook = h;
    op_init(&h->op, c->pod->node->o.loop, pre_stop ? "preStop hook" : "postStart hook", deadline_ms,
            hooks_on_abort, hooks_on_over, h);
    op_set_subject(&h->op, c->pod->key);
    start_handler(h, &e);
    if (e.code != ERR_OK) {
        h->why = strdup(e.text);
        hooks_finish(h, &e);
    }
}

void hook_post_start(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    hook_set_post(c, POST_RUNNING);
    c->pod->record_dirty = true;
    hooks_begin(c, false, 0);
    if (own->hook == NULL)
        hook_set_post(c, POST_FAILED);
}

void hook_pre_stop(struct ctr *c, int64_t grace_ns)
{
    hooks_begin(c, true, (uint64_t)(grace_ns / 1000000) + 1);
}

void hook_cancel(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    if (own->hook != NULL)
        op_cancel(&own->hook->op);
}

void hook_container_ended(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    if (own->hook == NULL)
        return;
    own->hook->ended = true;
    op_cancel(&own->hook->op);
}
