/* SPDX-License-Identifier: Apache-2.0 */
/* TCP: whether a connection can be made (pkg/probe/tcp). */
#include "agent/probe/internal.h"

#include <string.h>

struct tcp_run {
    struct probe_run run;
    struct probe_link link;
    struct probe_outside outside;
    char host[256];
    unsigned port;
};

static void tcp_on_connect(struct probe_link *l, int status)
{
    buf_auto b = BUF_INIT(1024);

    probe_link_close(l);
    if (status != 0)
        probe_link_add_dial_error(l, status, &b);
    probe_verdict(l->check, status == 0 ? PROBE_SUCCESS : PROBE_FAILURE, "%s", b.p);
}

static void tcp_report_timeout(struct tcp_run *t)
{
    buf_auto b = BUF_INIT(1024);

    probe_add_address(&b, t->host, t->port);
    probe_verdict(t->run.check, PROBE_FAILURE, "dial tcp %s: i/o timeout", b.p);
}

static void tcp_on_outside(struct probe_outside *o, const struct err *result)
{
    struct tcp_run *t = container_of(o, struct tcp_run, outside);
    buf_auto b = BUF_INIT(1024);

    if (o->check->op.why.code != ERR_OK) {
        tcp_report_timeout(t);
        return;
    }
    if (result->code != ERR_OK)
        probe_outside_add_error(o, result, &b);
    probe_verdict(o->check, result->code == ERR_OK ? PROBE_SUCCESS : PROBE_FAILURE, "%s", b.p);
}

static void tcp_on_abort(struct op *op)
{
    struct probe_check *c = container_of(op, struct probe_check, op);
    struct tcp_run *t = (struct tcp_run *)c->run;

    if (op_live(&t->outside.proc.op)) {
        proc_cancel(&t->outside.proc);
        return;
    }
    probe_link_close(&t->link);
    tcp_report_timeout(t);
}

void probe_tcp_start(struct probe_check *c, const struct probe_world *w, const char *host, unsigned port,
                     const char *subject, uint64_t timeout_ms, op_done_fn done, void *owner)
{
    struct tcp_run *t =
        probe_begin(c, w, sizeof(*t), "tcp probe", subject, timeout_ms, tcp_on_abort, done, owner);

    if (t == NULL)
        return;
    snprintf(t->host, sizeof(t->host), "%s", host);
    t->port = port;
    t->link.on_connect = tcp_on_connect;
    if (probe_host_is_address(host))
        probe_link_open(&t->link, c, host, port);
    else
        probe_outside_start(&t->outside, c, "tcp", host, port, NULL, 0, tcp_on_outside);
}
