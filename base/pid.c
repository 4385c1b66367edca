#include "base/internal.h"

#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

int open_pidfd(pid_t pid) /* O_CLOEXEC by itself; since Linux 5.3 */
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

uint64_t proc_start_time(pid_t pid)
{
    struct err e = { 0 };
    str_auto text = NULL;
    unsigned long long ticks;
    char path[32];
    char *p;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (pid <= 0 || fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return 0;
    /* proc(5): field 22, counted after the name in brackets, which may hold blanks and brackets itself. */
    p = strrchr(text, ')');
    if (p == NULL ||
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1)
        return 0;
    return ticks;
}

int proc_open(pid_t pid, uint64_t start_time, struct err *e)
{
    fd_auto fd = -1;

    if (pid <= 0) {
        err_set(e, ERR_NOT_FOUND, "process %d is no process", (int)pid);
        return -1;
    }
    fd = open_pidfd(pid);
    if (fd < 0) {
        err_sys(e, errno == EINVAL ? ESRCH : errno, "process %d", (int)pid); /* EINVAL: a thread's id */
        return -1;
    }
    /* Only after opening: from here on the number cannot go to another process unnoticed. */
    if (start_time == 0 || proc_start_time(pid) != start_time) {
        err_set(e, ERR_NOT_FOUND, "process %d is another one than before", (int)pid);
        return -1;
    }
    return take_fd(&fd);
}
