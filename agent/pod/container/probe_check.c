/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/container/probe_check.h"

#include "agent/pod/container/handler_resolve.h"
#include "agent/probe/text.h"
#include "base/codec/go_quote.h"
#include "base/duration.h"

#include <string.h>

static void probe_check_finish(struct probe_attempt *a)
{
    void (*done)(struct probe_attempt *) = a->done;

    free(take_ptr(&a->command));
    a->done = NULL;
    done(a);
}

void probe_attempt_cancel(struct probe_attempt *a)
{
    if (op_live(&a->exec.op))
        op_cancel(&a->exec.op);
    if (op_live(&a->check.op))
        op_cancel(&a->check.op);
}

bool probe_needs_process(const struct ctr *c, const struct api_probe *spec)
{
    const struct api_handler *h = &spec->handler;

    (void)c;
    switch (h->kind) {
    case API_HANDLER_EXEC:
        return true;
    case API_HANDLER_HTTP:
        return str_eq(h->scheme, "HTTPS") || (h->host != NULL && !probe_host_is_address(h->host));
    case API_HANDLER_TCP:
        return h->host != NULL && !probe_host_is_address(h->host);
    case API_HANDLER_GRPC:
    case API_HANDLER_SLEEP:
    case API_HANDLER_NONE:
        break;
    }
    return false;
}

static void probe_check_set_text(struct probe_attempt *a, const char *text, size_t n)
{
    buf_reset(&a->text);
    probe_add_utf8(&a->text, text, n, PROBE_TEXT_MAX);
}

/* ---- results ---- */

static void probe_check_on_check(struct op *op, const struct err *result)
{
    struct probe_attempt *a = op->owner;

    a->cancelled = result->code == ERR_CANCELLED;
    a->outcome = a->check.outcome;
    a->errored = a->check.errored;
    if (result->code == ERR_OK) {
        probe_check_set_text(a, a->check.text.p, a->check.text.n);
    } else if (!a->cancelled) {
        a->outcome = PROBE_UNKNOWN;
        a->errored = true;
        probe_check_set_text(a, result->text, strlen(result->text));
    }
    buf_done(&a->check.text);
    probe_check_finish(a);
}

static void say_exec_timeout(struct probe_attempt *a)
{
    const char *command = a->command != NULL ? a->command : "";

    buf_adds(&a->text, "command timed out: ");
    go_quote(&a->text, command, strlen(command));
    buf_addf(&a->text, " timed out after %s", duration_format_ms(a->timeout_ms).s);
}

static void probe_check_on_exec(struct op *op, const struct err *result)
{
    struct probe_attempt *a = op->owner;

    switch (result->code) {
    case ERR_OK:
        a->outcome = a->exec.exit_code == 0 ? PROBE_SUCCESS : PROBE_FAILURE;
        probe_check_set_text(a, a->exec.output.p, a->exec.output.n);
        break;
    case ERR_DEADLINE:
        a->outcome = PROBE_FAILURE;
        say_exec_timeout(a);
        break;
    case ERR_CANCELLED:
    case ERR_PRECONDITION: /* it has just ended */
        a->cancelled = true;
        break;
    default:
        a->outcome = PROBE_UNKNOWN;
        a->errored = true;
        buf_adds(&a->text, "rpc error: code = Unknown desc = failed to exec in container: ");
        probe_add_utf8(&a->text, result->text, strlen(result->text), sizeof(result->text));
    }
    if (a->exec.output.p != NULL)
        buf_done(&a->exec.output);
    probe_check_finish(a);
}

/* ---- start ---- */

/* A check that cannot start is reported from the loop, like every other result. */
static void on_later_closed(uv_handle_t *handle)
{
    probe_check_finish(container_of(handle, struct probe_attempt, later));
}

static void probe_check_on_later(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_later_closed);
}

static void fail_later(struct probe_attempt *a, const struct err *e)
{
    a->outcome = PROBE_UNKNOWN;
    a->errored = true;
    probe_check_set_text(a, e->text, strlen(e->text));
    uv_timer_init(a->c->pod->node->o.loop, &a->later);
    uv_timer_start(&a->later, probe_check_on_later, 0, 0);
}

static void probe_check_start_exec(struct probe_attempt *a, const struct api_handler *h, struct arena *arena,
                                   struct err *e)
{
    struct rt_exec_spec spec = { .id = a->c->cur.id,
                                 .output_max = PROBE_EXEC_OUTPUT_MAX,
                                 .deadline_ms = a->timeout_ms,
                                 .stdin_fd = -1,
                                 .stdout_fd = -1,
                                 .stderr_fd = -1 };
    buf_auto command = BUF_INIT(4096);

    if (handler_resolve_command(a->c, h, true, arena, &spec.argv, e) != ERR_OK)
        return;
    handler_resolve_add_command(spec.argv, &command);
    a->command = strdup(command.p);
    rt_exec_start(&a->exec, a->c->pod->node->rt, &spec, probe_check_on_exec, a);
}

static void probe_check_start(struct probe_attempt *a, const struct api_handler *h, struct arena *arena,
                              struct err *e)
{
    struct ctr *c = a->c;
    struct probe_world w = handler_resolve_world(c->pod);
    const char *host = h->host != NULL && h->host[0] != '\0' ? h->host : handler_resolve_pod_ip(c->pod);
    struct probe_http http;
    struct probe_grpc grpc;
    unsigned port = 0;

    switch (h->kind) {
    case API_HANDLER_EXEC:
        probe_check_start_exec(a, h, arena, e);
        return;
    case API_HANDLER_HTTP:
        if (handler_resolve_http(c, h, HANDLER_PROBE_AGENT, arena, &http, e) == ERR_OK)
            probe_http_start(&a->check, &w, &http, c->pod->key, a->timeout_ms, probe_check_on_check, a);
        return;
    case API_HANDLER_TCP:
        if (handler_resolve_port(c->spec, h->port, &port, e) == ERR_OK)
            probe_tcp_start(&a->check, &w, host, port, c->pod->key, a->timeout_ms, probe_check_on_check, a);
        return;
    case API_HANDLER_GRPC:
        if (handler_resolve_port(c->spec, h->port, &port, e) != ERR_OK)
            return;
        grpc = (struct probe_grpc){ handler_resolve_pod_ip(c->pod), port,
                                    h->grpc_service != NULL ? h->grpc_service : "", HANDLER_PROBE_AGENT };
        probe_grpc_start(&a->check, &w, &grpc, c->pod->key, a->timeout_ms, probe_check_on_check, a);
        return;
    case API_HANDLER_SLEEP:
    case API_HANDLER_NONE:
        err_set(e, ERR_INTERNAL, "missing probe handler");
        return;
    }
}

void probe_attempt_start(struct probe_attempt *a, struct ctr *c, const struct api_probe *spec,
                         void (*done)(struct probe_attempt *a))
{
    struct arena arena = { 0 };
    struct err e = { 0 };

    *a = (struct probe_attempt){
        .outcome = PROBE_UNKNOWN, .c = c, .timeout_ms = (uint64_t)spec->timeout_seconds * 1000, .done = done
    };
    buf_init(&a->text, PROBE_TEXT_MAX);
    probe_check_start(a, &spec->handler, &arena, &e);
    arena_done(&arena);
    if (e.code != ERR_OK)
        fail_later(a, &e);
}
