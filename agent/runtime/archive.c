/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/stream.h"
#include "base/process/copy_helper.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The main process, verified to still be the container's after its pid was pinned; -1 with *e. */
static int open_init(struct rt *rt, const char *id, struct err *e)
{
    struct rt_state before, after;
    fd_auto pidfd = -1;

    if (rt_state(rt, id, &before, e) != ERR_OK)
        return -1;
    if (before.phase == RT_RUNNING && before.pid > 0) {
        pidfd = (int)syscall(SYS_pidfd_open, before.pid, 0);
        if (pidfd < 0 && errno != ESRCH) {
            err_sys(e, errno, "open process %d of container %.12s", (int)before.pid, id);
            return -1;
        }
        if (rt_state(rt, id, &after, e) != ERR_OK)
            return -1;
    }
    if (pidfd >= 0 && after.phase == RT_RUNNING && after.pid == before.pid)
        return take_fd(&pidfd);
    err_set(e, ERR_PRECONDITION, "container %.12s is not running", id);
    return -1;
}

enum err_code rt_archive_start(struct proc *p, struct rt *rt, const struct rt_archive_spec *spec,
                               op_done_fn done, void *owner, struct err *e)
{
    bool into = spec->in >= 0;
    fd_auto pidfd = open_init(rt, spec->id, e);
    const char *const argv[] = { rt->unpack_path, COPY_OPTION, into ? "into" : "from", spec->path, NULL };
    const struct proc_fd fds[] = { { pidfd, COPY_PIDFD },
                                   { into ? spec->in : spec->out, COPY_STREAM },
                                   { spec->messages, COPY_MESSAGES } };
    const struct proc_spec child = {
        .name = "cp",
        .subject = spec->id,
        .argv = argv,
        .fds = fds,
        .n_fds = ARRAY_LEN(fds),
        CG_OPS(rt->cgroups),
    };

    if (pidfd < 0)
        return e->code;
    proc_start(p, &child, rt->loop, done, owner);
    return ERR_OK;
}
