/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroups/psi_watch.h"

#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WINDOW_MIN_US 500000 /* kernel/sched/psi.c */
#define WINDOW_MAX_US 10000000
#define WINDOW_USER_US 2000000 /* without CAP_SYS_RESOURCE: multiples of this */

struct cg_psi_watch {
    uv_poll_t poll;
    int fd;
    void (*fn)(void *arg);
    void *arg;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void psi_watch_on_poll(uv_poll_t *poll, int status, int events)
{
    struct cg_psi_watch *w = poll->data;

    if (status != 0) { /* POLLERR: the trigger was removed, and would be reported forever */
        uv_poll_stop(poll);
        return;
    }
    if (events & UV_PRIORITIZED)
        w->fn(w->arg);
}

static enum err_code psi_watch_trigger(int fd, const char *resource, uint64_t stall_us, uint64_t window_us,
                                       struct err *e)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "some %" PRIu64 " %" PRIu64, stall_us, window_us);

    if (write(fd, text, (size_t)n + 1) >= 0) /* including its NUL */
        return ERR_OK;
    return errno == EOPNOTSUPP
               ? err_set(e, ERR_PRECONDITION, "%s pressure: switched off in this kernel (psi=1)", resource)
               : err_sys(e, errno, "set a trigger on /proc/pressure/%s", resource);
}

enum err_code cg_psi_watch_open(struct cg_psi_watch **ret, const char *resource, uint64_t stall_us,
                                uint64_t window_us, uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                                struct err *e)
{
    struct cg_psi_watch *w;
    char path[64];
    int rc;

    if (window_us < WINDOW_MIN_US || window_us > WINDOW_MAX_US || stall_us == 0 || stall_us > window_us)
        return err_set(e, ERR_INVALID,
                       "pressure trigger of %" PRIu64 " us in %" PRIu64
                       " us: the window must have 500 ms to 10 s, and the wait fit into it",
                       stall_us, window_us);
    snprintf(path, sizeof(path), "/proc/pressure/%s", resource);
    fd_auto fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, ERR_PRECONDITION,
                       "%s pressure: not supported by this kernel (no CONFIG_PSI, or psi=1 missing on its "
                       "command line)",
                       resource);
    if (psi_watch_trigger(fd, resource, stall_us, window_us, e) != ERR_OK && e->sys == EINVAL &&
        window_us % WINDOW_USER_US != 0) {
        const uint64_t longer_us = (window_us / WINDOW_USER_US + 1) * WINDOW_USER_US;

        *e = (struct err){ 0 };
        ERR_IGNORE(psi_watch_trigger(fd, resource, stall_us * longer_us / window_us, longer_us, e));
    }
    if (e->code != ERR_OK)
        return e->code;
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return err_nomem(e);
    rc = uv_poll_init(loop, &w->poll, fd);
    if (rc != 0) {
        free(w);
        return err_sys(e, -rc, "poll %s", path);
    }
    w->fd = take_fd(&fd);
    w->fn = fn;
    w->arg = arg;
    w->poll.data = w;
    uv_poll_start(&w->poll, UV_PRIORITIZED, psi_watch_on_poll);
    *ret = w;
    return ERR_OK;
}

static void psi_watch_on_closed(uv_handle_t *handle)
{
    struct cg_psi_watch *w = handle->data;

    close(w->fd); /* the kernel's trigger ends with it */
    if (w->closed != NULL)
        w->closed(w->closed_arg);
    free(w);
}

void cg_psi_watch_close(struct cg_psi_watch *w, void (*closed)(void *arg), void *arg)
{
    if (w == NULL)
        return;
    w->closed = closed;
    w->closed_arg = arg;
    uv_close((uv_handle_t *)&w->poll, psi_watch_on_closed);
}
