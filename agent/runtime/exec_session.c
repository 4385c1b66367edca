/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a session, for `coracle-exec` and for the agent's cleanup after it. */
#include "agent/runtime/exec_report.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAUSE_US = 2000 };

static struct presence stat_unknown(int why)
{
    errno = why;
    return (struct presence){ 0 };
}

static struct presence stat_failed(void)
{
    return errno == ESRCH || errno == ENOENT ? presence_absent() : stat_unknown(errno);
}

/* Absent: no such process, or a zombie. Unknown: see errno. */
static struct presence look_stat(pid_t pid, pid_t *ret_parent, pid_t *ret_session, uint64_t *ret_start_time)
{
    char path[64], text[2048];
    const char *p;
    ssize_t n;
    char state;
    int fd, parent, session, before;
    uint64_t start_time;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return stat_failed();
    n = read(fd, text, sizeof(text) - 1);
    before = errno;
    close(fd);
    errno = before;
    if (n < 0)
        return stat_failed();
    text[n] = '\0';
    p = strrchr(text, ')'); /* the process chooses the name before it */
    if (p == NULL || sscanf(p + 1,
                            " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                            "%*d %" SCNu64,
                            &state, &parent, &session, &start_time) != 4)
        return stat_unknown(EIO);
    if (strchr("ZXx", state) != NULL)
        return presence_absent();
    *ret_parent = parent;
    *ret_session = session;
    *ret_start_time = start_time;
    return presence_present();
}

struct presence exec_read_process(pid_t pid, pid_t *ret_session, uint64_t *ret_start_time)
{
    pid_t parent;

    return look_stat(pid, &parent, ret_session, ret_start_time);
}

static struct presence look_belongs(pid_t pid, pid_t leader, pid_t session)
{
    uint64_t start_time;
    pid_t its;
    struct presence found = exec_read_process(pid, &its, &start_time);

    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    return pid == leader || (session > 1 && its == session) ? presence_present() : presence_absent();
}

static struct presence kill_if_it_belongs(pid_t pid, pid_t leader, pid_t session)
{
    struct presence found = look_belongs(pid, leader, session);
    int pidfd, before;

    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return stat_failed();
    /* Check again once its pid cannot be reused. */
    found = look_belongs(pid, leader, session);
    before = errno;
    if (!presence_is_unknown(found) && !presence_is_absent(found))
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    close(pidfd);
    errno = before;
    return found;
}

struct presence exec_session_kill(pid_t leader, pid_t session)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool some = false;
    int unknown = 0;

    if (proc == NULL)
        return stat_unknown(errno);
    if (session == getsid(0)) /* it is our own session, whose other members must survive */
        session = 0;
    while (errno = 0, (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name);

        if (!isdigit((unsigned char)entry->d_name[0]) || pid <= 1)
            continue;
        switch (presence_of(kill_if_it_belongs(pid, leader, session))) {
        case PRESENCE_UNKNOWN:
            unknown = errno;
            break;
        case PRESENCE_PRESENT:
            some = true;
            break;
        case PRESENCE_ABSENT:
            break;
        }
    }
    if (errno != 0)
        unknown = errno;
    closedir(proc);
    if (unknown != 0)
        return stat_unknown(unknown);
    return some ? presence_present() : presence_absent();
}

static void kill_children(void)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name), parent, session;
        struct presence found;
        uint64_t start_time;

        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        found = look_stat(pid, &parent, &session, &start_time);
        if (!presence_is_unknown(found) && !presence_is_absent(found) && parent == getpid())
            kill(pid, SIGKILL); /* its pid is not reused until we wait for it */
    }
    if (proc != NULL)
        closedir(proc);
}

bool exec_children_end(unsigned grace_ms)
{
    for (unsigned waited_us = 0;; waited_us += PAUSE_US) {
        pid_t reaped;

        do
            reaped = waitpid(-1, NULL, WNOHANG);
        while (reaped > 0);
        if (reaped < 0)
            return true;
        if (waited_us >= grace_ms * 1000)
            return false;
        kill_children();
        usleep(PAUSE_US);
    }
}
