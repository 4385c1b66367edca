/* A session's processes, for `coracle-exec` and for the agent that cleans up after one. */
#include "agent/runtime/exec_report.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* False: no such process, or only what is left of it. */
static bool read_stat(pid_t pid, pid_t *ret_parent, pid_t *ret_session, uint64_t *ret_start_time)
{
    char path[64], text[2048];
    const char *p;
    ssize_t n;
    char state;
    int fd, parent, session;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    p = strrchr(text, ')'); /* the name before it is the process's own choice */
    if (p == NULL || sscanf(p + 1,
                            " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                            "%*d %" SCNu64,
                            &state, &parent, &session, ret_start_time) != 4)
        return false;
    *ret_parent = parent;
    *ret_session = session;
    return strchr("ZXx", state) == NULL;
}

bool exec_process_fields(pid_t pid, pid_t *ret_session, uint64_t *ret_start_time)
{
    pid_t parent;

    return read_stat(pid, &parent, ret_session, ret_start_time);
}

static bool belongs(pid_t pid, pid_t leader, pid_t session)
{
    uint64_t start_time;
    pid_t its;

    return exec_process_fields(pid, &its, &start_time) && (pid == leader || (session > 1 && its == session));
}

size_t exec_session_kill(pid_t leader, pid_t session)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    size_t n = 0;

    if (session == getsid(0)) /* not one of its own: nobody else in there is meant */
        session = 0;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        int pidfd;

        if (!isdigit((unsigned char)entry->d_name[0]) || pid <= 1 || !belongs(pid, leader, session))
            continue;
        /* Asked again once its number cannot be given to another. */
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0)
            continue;
        if (belongs(pid, leader, session)) {
            syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
            n++;
        }
        close(pidfd);
    }
    if (proc != NULL)
        closedir(proc);
    return n;
}

size_t exec_children_kill(void)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    size_t n = 0;

    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name), parent, session;
        uint64_t start_time;

        if (!isdigit((unsigned char)entry->d_name[0]) || !read_stat(pid, &parent, &session, &start_time) ||
            parent != getpid())
            continue;
        kill(pid, SIGKILL); /* its number is its own until we wait for it */
        n++;
    }
    if (proc != NULL)
        closedir(proc);
    return n;
}
