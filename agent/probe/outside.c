/* SPDX-License-Identifier: Apache-2.0 */
/* Checks made by coracle-probe: TLS, and hosts given by name. */
#include "agent/probe/internal.h"

#include "agent/probe/reply.h"

#include <string.h>

static void outside_on_done(struct op *op, const struct err *result)
{
    struct probe_outside *o = op->owner;

    o->on_over(o, result);
}

void probe_outside_start(struct probe_outside *o, struct probe_check *c, const char *kind, const char *host,
                         unsigned port, const char *request, size_t n,
                         void (*on_over)(struct probe_outside *o, const struct err *result))
{
    const struct probe_world *w = &c->run->world;
    char number[8];
    const char *const argv[] = { w->helper != NULL && w->helper[0] == '/' ? w->helper
                                                                          : "/nonexistent/coracle-probe",
                                 kind, host, number, NULL };

    snprintf(number, sizeof(number), "%u", port);
    o->check = c;
    o->on_over = on_over;
    proc_start(&o->proc,
               &(struct proc_spec){ .name = "coracle-probe",
                                    .subject = c->op.subject,
                                    .argv = argv,
                                    .stdin_data = request,
                                    .stdin_size = n,
                                    .stdout_max = PROBE_RAW_MAX + 64 * 1024,
                                    .cgroup_fd = w->cgroup_fd,
                                    .cgroup_procs = w->cgroup_procs },
               c->op.loop, outside_on_done, o); /* ended by the check's own deadline */
}

void probe_outside_add_error(const struct probe_outside *o, const struct err *result, struct buf *out)
{
    const char *said = o->proc.err_out.p;
    size_t n = o->proc.err_out.n;

    while (n > 0 && said[n - 1] == '\n')
        n--;
    if (result->code == ERR_UNKNOWN && n > 0)
        buf_add(out, said, n < 1024 ? n : 1024);
    else
        buf_adds(out, result->text);
}
