/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC health (pkg/probe/grpc): connects until the server speaks HTTP/2, retrying like grpc-go until the
 * deadline; then makes one call. */
#include "agent/probe/internal.h"

#include "agent/probe/grpc_call.h"
#include "base/codec/go_quote.h"
#include "base/duration.h"

#include <string.h>

#define RECONNECT_FIRST_MS 1000 /* grpc-go's backoff: 1 s, times 1.6, at most 120 s */
#define RECONNECT_MAX_MS 120000
#define CONNECTIONS_MAX 64 /* per check: with this back-off, enough for more than an hour */
#define OUTPUT_MAX (256 * 1024)

struct grpc_run {
    struct probe_run run;
    char host[256], *service, *user_agent, *address;
    unsigned port;
    struct grpc_call *call;
    struct probe_link *link;                   /* the one in use */
    struct probe_link *links[CONNECTIONS_MAX]; /* freed at the end */
    size_t n_links;
    struct buf output; /* not written yet */
    uv_timer_t again;
    bool timer_open;
    uint64_t pause_ms;
};

static void connect_again(struct grpc_run *g);

static void grpc_run_free(struct probe_run *run)
{
    struct grpc_run *g = (struct grpc_run *)run;

    for (size_t i = 0; i < g->n_links; i++)
        free(g->links[i]);
    grpc_call_free(g->call);
    buf_done(&g->output);
    free(g->service);
    free(g->user_agent);
    free(g->address);
}

static void grpc_over(struct grpc_run *g)
{
    if (g->link != NULL)
        probe_link_close(g->link);
    if (g->timer_open) {
        g->timer_open = false;
        op_close_handle(&g->run.check->op, (uv_handle_t *)&g->again);
    }
}

static void grpc_judge(struct grpc_run *g)
{
    static const char *const names[] = { "UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN" };
    struct probe_check *c = g->run.check;
    const struct grpc_answer *a = grpc_call_answer(g->call);

    grpc_over(g);
    if (a->code == 0 && a->serving == 1) {
        probe_verdict(c, PROBE_SUCCESS, "service healthy");
    } else if (a->code == 0 && a->serving < 4) {
        probe_verdict(c, PROBE_FAILURE, "service unhealthy (responded with \"%s\")", names[a->serving]);
    } else if (a->code == 0) {
        probe_verdict(c, PROBE_FAILURE, "service unhealthy (responded with \"%d\")", (int)a->serving);
    } else if (a->code == 12) {
        probe_verdict(
            c, PROBE_FAILURE,
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s",
            a->message);
    } else if (a->code == 4) {
        probe_verdict(c, PROBE_FAILURE, "timeout: health rpc did not complete within %s",
                      duration_format_ms(g->run.timeout_ms).s);
    } else if (a->code > 16) {
        probe_verdict(c, PROBE_FAILURE,
                      "error: health rpc probe failed: rpc error: code = Code(%d) desc = %s", a->code,
                      a->message);
    } else {
        probe_verdict(c, PROBE_FAILURE, "error: health rpc probe failed: rpc error: code = %s desc = %s",
                      grpc_code_name(a->code), a->message);
    }
}

/* ---- one connection ---- */

static void grpc_flush(struct grpc_run *g)
{
    struct probe_link *l = g->link;

    grpc_call_output(g->call, &g->output);
    if (l == NULL || l->sent != NULL || g->output.n == 0 || g->output.failed)
        return;
    size_t n = g->output.n;
    char *text = buf_detach(&g->output);
    if (text != NULL)
        probe_link_write(l, text, n);
}

static void grpc_lost(struct grpc_run *g)
{
    probe_link_close(g->link);
    g->link = NULL;
    connect_again(g);
}

/* Acts on the state of the call, after bytes arrived or the connection ended. */
static void grpc_step(struct grpc_run *g)
{
    enum grpc_call_state before;

    do {
        before = grpc_call_state(g->call);
        switch (before) {
        case GRPC_GREETING:
        case GRPC_ASKED:
            grpc_flush(g);
            break;
        case GRPC_ANSWERED:
            grpc_judge(g);
            return;
        case GRPC_BROKEN:
            grpc_lost(g);
            return;
        }
    } while (grpc_call_state(g->call) != before);
}

static void grpc_on_data(struct probe_link *l, const char *data, ssize_t n)
{
    struct grpc_run *g = (struct grpc_run *)l->check->run;
    buf_auto why = BUF_INIT(1024);

    if (n < 0)
        probe_link_add_read_error(l, (int)n, &why);
    else
        buf_adds(&why, "EOF");
    grpc_call_feed(g->call, data, n > 0 ? (size_t)n : 0, why.p);
    grpc_step(g);
}

static void grpc_on_written(struct probe_link *l)
{
    grpc_step((struct grpc_run *)l->check->run);
}

static void grpc_on_connect(struct probe_link *l, int status)
{
    struct grpc_run *g = (struct grpc_run *)l->check->run;

    if (status != 0) {
        grpc_lost(g);
        return;
    }
    grpc_flush(g);
    probe_link_read(l);
}

static void grpc_no_memory(struct grpc_run *g)
{
    struct err e = { 0 };

    grpc_over(g);
    err_nomem(&e);
    op_finish(&g->run.check->op, &e);
}

static void connect_now(struct grpc_run *g)
{
    struct probe_link *l = g->n_links < CONNECTIONS_MAX ? calloc(1, sizeof(*l)) : NULL;
    struct err e = { 0 };

    grpc_call_free(take_ptr(&g->call));
    buf_reset(&g->output);
    if (l == NULL ||
        grpc_call_new(&g->call, g->address, g->service, g->user_agent, g->run.timeout_ms, &e) != ERR_OK) {
        free(l);
        grpc_no_memory(g);
        return;
    }
    g->links[g->n_links++] = g->link = l;
    l->on_connect = grpc_on_connect;
    l->on_data = grpc_on_data;
    l->on_written = grpc_on_written;
    probe_link_open(l, g->run.check, g->host, g->port);
}

static void grpc_on_again(uv_timer_t *timer)
{
    struct grpc_run *g = container_of(timer, struct grpc_run, again);

    connect_now(g);
}

static void connect_again(struct grpc_run *g)
{
    if (g->run.check->op.finished)
        return;
    if (g->n_links >= CONNECTIONS_MAX)
        return; /* the deadline ends it */
    uv_timer_start(&g->again, grpc_on_again, g->pause_ms, 0);
    g->pause_ms = g->pause_ms * 8 / 5;
    if (g->pause_ms > RECONNECT_MAX_MS)
        g->pause_ms = RECONNECT_MAX_MS;
}

/* ---- the check ---- */

static void grpc_on_abort(struct op *op)
{
    struct probe_check *c = container_of(op, struct probe_check, op);
    struct grpc_run *g = (struct grpc_run *)c->run;
    buf_auto address = BUF_INIT(1024);

    grpc_over(g);
    if (g->call != NULL && grpc_call_state(g->call) == GRPC_ASKED) {
        probe_verdict(c, PROBE_FAILURE, "timeout: health rpc did not complete within %s",
                      duration_format_ms(g->run.timeout_ms).s);
        return;
    }
    go_quote(&address, g->address, strlen(g->address));
    probe_verdict(c, PROBE_FAILURE,
                  "timeout: failed to connect service %s within %s: context deadline exceeded", address.p,
                  duration_format_ms(g->run.timeout_ms).s);
}

void probe_grpc_start(struct probe_check *c, const struct probe_world *w, const struct probe_grpc *spec,
                      const char *subject, uint64_t timeout_ms, op_done_fn done, void *owner)
{
    struct grpc_run *g =
        probe_begin(c, w, sizeof(*g), "grpc probe", subject, timeout_ms, grpc_on_abort, done, owner);
    buf_auto address = BUF_INIT(1024);

    if (g == NULL)
        return;
    g->run.free = grpc_run_free;
    buf_init(&g->output, OUTPUT_MAX);
    snprintf(g->host, sizeof(g->host), "%s", spec->host);
    g->port = spec->port;
    g->pause_ms = RECONNECT_FIRST_MS;
    probe_add_address(&address, spec->host, spec->port);
    g->address = buf_detach(&address);
    g->service = strdup(spec->service);
    g->user_agent = strdup(spec->user_agent);
    uv_timer_init(c->op.loop, &g->again);
    g->timer_open = true;
    if (g->address == NULL || g->service == NULL || g->user_agent == NULL) {
        grpc_no_memory(g);
        return;
    }
    connect_now(g);
}
