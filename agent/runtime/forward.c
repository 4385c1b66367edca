/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec_report.h"
#include "agent/runtime/stream.h"

#include <stdio.h>

void rt_forward_start(struct proc *p, struct rt *rt, const struct rt_forward_spec *spec, op_done_fn done,
                      void *owner)
{
    const struct proc_fd fds[] = { { spec->in, EXEC_FORWARD_IN }, { spec->out, EXEC_FORWARD_OUT } };
    const char *argv[] = { rt->exec_path != NULL ? rt->exec_path : "/nonexistent", EXEC_FORWARD,
                           spec->netns != NULL ? spec->netns : "", NULL, NULL };
    char port[8];
    const struct proc_spec child = {
        .name = "port-forward",
        .subject = spec->netns,
        .argv = argv,
        .fds = fds,
        .n_fds = ARRAY_LEN(fds),
        CG_OPS(rt->cgroups),
    };

    snprintf(port, sizeof(port), "%u", spec->port);
    argv[3] = port;
    proc_start(p, &child, rt->loop, done, owner);
}
