/* SPDX-License-Identifier: Apache-2.0 */
/* The PID namespace of a running container, for another container that shares it. */
#include "agent/runtime/container_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum err_code rt_pidns_open(struct rt *rt, const char *id, int *ret, struct err *e)
{
    fd_auto pidfd = -1, pidns = -1;
    char path[64];
    pid_t pid;

    if (rt_init_open(rt, id, &pid, &pidfd, e) != ERR_OK)
        return e->code;
    snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    pidns = open(path, O_RDONLY | O_CLOEXEC);
    if (pidns < 0 && errno != ENOENT && errno != ESRCH)
        return err_sys(e, errno, "open %s of container %.12s", path, id);
    /* The order matters: while the process lives, no other process has its pid. */
    if (pidns < 0 || rt_pidfd_ended(pidfd))
        return err_set(e, ERR_NOT_FOUND, "container %.12s is not running", id);
    *ret = take_fd(&pidns);
    return ERR_OK;
}
