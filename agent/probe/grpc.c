/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC health (pkg/probe/grpc): retries the connection until the server answers in HTTP/2 or the deadline
 * passes (base/grpc/client.h), then makes one call. */
#include "agent/probe/grpc_health.h"
#include "agent/probe/internal.h"

#include "base/codec/go_quote.h"
#include "base/duration.h"
#include "base/grpc/client.h"

#include <string.h>

#define MESSAGE_MAX (16 * 1024) /* for the single small answer, and the name of the service */
#define CONNECT_MS 20000        /* grpc-go's */

struct grpc_run {
    struct probe_run run;
    struct grpc_channel *channel;
    struct grpc_call call;
    char *address;
};

static void grpc_run_free(struct probe_run *run)
{
    struct grpc_run *g = (struct grpc_run *)run;

    free(g->address);
}

/* ---- the verdict ---- */

static void judge_late(struct grpc_run *g)
{
    struct probe_check *c = g->run.check;
    buf_auto address = BUF_INIT(1024);

    if (g->call.sent) {
        probe_verdict(c, PROBE_FAILURE, "timeout: health rpc did not complete within %s",
                      duration_format_ms(g->run.timeout_ms).s);
        return;
    }
    go_quote(&address, g->address, strlen(g->address));
    probe_verdict(c, PROBE_FAILURE,
                  "timeout: failed to connect service %s within %s: context deadline exceeded", address.p,
                  duration_format_ms(g->run.timeout_ms).s);
}

static void judge_health(struct grpc_run *g)
{
    static const char *const names[] = { "UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN" };
    struct probe_check *c = g->run.check;
    uint64_t health = 0;

    if (!grpc_health_response(g->call.response.p, g->call.response.n, &health))
        probe_verdict(c, PROBE_FAILURE,
                      "error: health rpc probe failed: rpc error: code = Internal desc = grpc: failed to "
                      "unmarshal the received message: proto: cannot parse invalid wire-format data");
    else if (health == 1)
        probe_verdict(c, PROBE_SUCCESS, "service healthy");
    else if (health < ARRAY_LEN(names))
        probe_verdict(c, PROBE_FAILURE, "service unhealthy (responded with \"%s\")", names[health]);
    else
        probe_verdict(c, PROBE_FAILURE, "service unhealthy (responded with \"%d\")", (int)health);
}

static void judge(struct grpc_run *g, const struct err *result)
{
    struct probe_check *c = g->run.check;
    char room[GRPC_CODE_SIZE];

    switch (result->code) {
    case ERR_OK:
        judge_health(g);
        break;
    case ERR_DEADLINE:
        judge_late(g);
        break;
    case ERR_UNIMPLEMENTED:
        probe_verdict(
            c, PROBE_FAILURE,
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s",
            g->call.status.text);
        break;
    default:
        probe_verdict(c, PROBE_FAILURE, "error: health rpc probe failed: rpc error: code = %s desc = %s",
                      grpc_status_name(&g->call.status, room), g->call.status.text);
    }
}

/* ---- the check ---- */

static void grpc_on_done(struct op *op, const struct err *result)
{
    struct grpc_run *g = op->owner;
    struct op *check = &g->run.check->op;

    grpc_channel_close(take_ptr(&g->channel));
    if (check->why.code != ERR_OK) /* cancelled */
        op_finish(check, NULL);
    else if (result->code == ERR_EXHAUSTED &&
             !g->call.sent) /* out of memory: no information about the server */
        op_finish(check, result);
    else
        judge(g, result);
}

static void grpc_on_abort(struct op *op)
{
    struct probe_check *c = container_of(op, struct probe_check, op);
    struct grpc_run *g = (struct grpc_run *)c->run;

    op_cancel(&g->call.op);
}

static enum err_code grpc_begin(struct grpc_run *g, const struct probe_grpc *spec, struct err *e)
{
    buf_auto address = BUF_INIT(1024), request = BUF_INIT(MESSAGE_MAX);
    struct grpc_channel_options channel = {
        .loop = g->run.world.loop,
        .user_agent = spec->user_agent,
        .message_max = MESSAGE_MAX,
        .connect_ms = CONNECT_MS,
    };
    struct grpc_call_options call = { .path = "/grpc.health.v1.Health/Check",
                                      .deadline_ms = g->run.timeout_ms };

    probe_add_address(&address, spec->host, spec->port);
    if (buf_check(&address, e) != ERR_OK || grpc_health_request(spec->service, &request, e) != ERR_OK)
        return e->code;
    g->address = buf_detach(&address);
    if (g->address == NULL)
        return err_nomem(e);
    channel.target = channel.authority = g->address;
    if (grpc_channel_open(&g->channel, &channel, e) != ERR_OK)
        return e->code;
    call.request = (struct grpc_bytes){ (const uint8_t *)request.p, request.n };
    grpc_call_start(&g->call, g->channel, &call, grpc_on_done, g);
    return ERR_OK;
}

/* The deadline is set on the call, because the call passes it to the server. */
void probe_grpc_start(struct probe_check *c, const struct probe_world *w, const struct probe_grpc *spec,
                      const char *subject, uint64_t timeout_ms, op_done_fn done, void *owner)
{
    struct grpc_run *g = probe_begin(c, w, sizeof(*g), "grpc probe", subject, 0, grpc_on_abort, done, owner);
    struct err e = { 0 };

    if (g == NULL)
        return;
    g->run.free = grpc_run_free;
    g->run.timeout_ms = timeout_ms;
    if (grpc_begin(g, spec, &e) != ERR_OK)
        op_finish(&c->op, &e);
}
