/* SPDX-License-Identifier: Apache-2.0 */
/* Signals to a container's init, and their names in STOPSIGNAL and lifecycle.stopSignal. */
#include "agent/runtime/container_internal.h"

#include "base/files/fs.h"
#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

static int real_time_number(const char *name)
{
    static const struct {
        const char *prefix;
        int sign;
    } bases[] = { { "RTMIN", 1 }, { "RTMAX", -1 } };
    struct err e = { 0 };
    int64_t offset = 0;
    size_t i;

    for (i = 0; i < ARRAY_LEN(bases); i++) {
        const char *rest = name + strlen(bases[i].prefix);
        int base = bases[i].sign > 0 ? SIGRTMIN : SIGRTMAX;

        if (strncasecmp(name, bases[i].prefix, strlen(bases[i].prefix)) != 0)
            continue;
        if (*rest != '\0' && (*rest != (bases[i].sign > 0 ? '+' : '-') ||
                              parse_i64(rest + 1, 0, SIGRTMAX - SIGRTMIN, &offset, "signal", &e) != ERR_OK))
            return 0;
        return base + bases[i].sign * (int)offset;
    }
    return 0;
}

int rt_signal_number(const char *name)
{
    struct err e = { 0 };
    int64_t number;
    int n;

    if (name == NULL)
        return 0;
    if (parse_i64(name, 1, SIGRTMAX, &number, "signal", &e) == ERR_OK)
        return (int)number;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (n = 1; n < SIGRTMIN; n++) {
        const char *known = sigabbrev_np(n);

        if (known != NULL && strcasecmp(known, name) == 0)
            return n;
    }
    return real_time_number(name);
}

/* The recorded pid belongs to the container until its conmon, the parent that reaps it, has seen it end; to
 * detect a reused pid, the process must be in the container's cgroup. */
struct presence rt_is_in_cgroup(pid_t pid, const char *id, struct err *e)
{
    str_auto text = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, e) != ERR_OK) {
        if (e->sys == ESRCH) { /* the process has ended in the meantime */
            *e = (struct err){ 0 };
            return presence_absent();
        }
        return presence_from_err(e);
    }
    return strstr(text, id) != NULL ? presence_present() : presence_absent();
}

enum err_code rt_init_open(struct rt *rt, const char *id, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
    struct rt_state s;
    struct presence its_own = presence_absent();
    fd_auto pidfd = -1;

    if (rt_state(rt, id, &s, e) != ERR_OK)
        return e->code;
    if (s.phase == RT_CREATED || s.phase == RT_RUNNING) {
        pidfd = (int)syscall(SYS_pidfd_open, s.pid, 0);
        if (pidfd < 0 && errno != ESRCH && errno != EINVAL)
            return err_sys(e, errno, "open process %d of container %.12s", (int)s.pid, id);
    }
    /* The order matters: the check of the pid then applies to the descriptor. */
    if (pidfd >= 0)
        its_own = rt_is_in_cgroup(s.pid, id, e);
    if (presence_is_unknown(its_own))
        return e->code;
    if (presence_is_absent(its_own) || rt_pidfd_ended(pidfd))
        return err_set(e, ERR_NOT_FOUND, "container %.12s is not running", id);
    *ret_pid = s.pid;
    *ret_pidfd = take_fd(&pidfd);
    return ERR_OK;
}

enum err_code rt_signal(struct rt *rt, const char *id, int signo, struct err *e)
{
    fd_auto pidfd = -1;
    pid_t pid;

    if (rt_init_open(rt, id, &pid, &pidfd, e) != ERR_OK)
        return e->code;
    if (syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0) != 0)
        return errno == ESRCH ? err_set(e, ERR_NOT_FOUND, "container %.12s is not running", id)
                              : err_sys(e, errno, "send signal %d to container %.12s", signo, id);
    return ERR_OK;
}
