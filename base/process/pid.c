/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/internal.h"

#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

/* Converts a failure to look up a process; ESRCH proves that it ended. */
static struct presence pid_failed(struct err *e)
{
    if (e->sys != ESRCH)
        return presence_from_err(e);
    *e = (struct err){ 0 };
    return presence_absent();
}

struct presence proc_start_time(pid_t pid, uint64_t *ret, struct err *e)
{
    str_auto text = NULL;
    unsigned long long ticks;
    char path[32];
    char *p;

    if (pid <= 0)
        return presence_absent();
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, e) != ERR_OK)
        return pid_failed(e);
    /* proc(5): field 22, counted after the name in parentheses, which may contain blanks and parentheses. */
    p = strrchr(text, ')');
    if (p == NULL ||
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1) {
        err_set(e, ERR_UNAVAILABLE, "%s has no start time", path);
        return presence_unknown(e);
    }
    *ret = ticks;
    return presence_present();
}

struct presence proc_open(pid_t pid, uint64_t start_time, int *ret_pidfd, struct err *e)
{
    struct presence found;
    uint64_t its = 0;
    fd_auto fd = -1;

    if (pid <= 0 || start_time == 0)
        return presence_absent();
    fd = pidfd_open(pid, 0);
    if (fd < 0) {
        err_sys(e, errno == EINVAL ? ESRCH : errno, "process %d", (int)pid); /* EINVAL: a thread's id */
        return pid_failed(e);
    }
    /* Checked after opening: from then on a reused pid is noticed. */
    found = proc_start_time(pid, &its, e);
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    if (its != start_time)
        return presence_absent();
    *ret_pidfd = take_fd(&fd);
    return found;
}

bool proc_find_own(const char *dir, const char *name, char *ret, size_t size)
{
    static const char *const below[] = { "", "/libexec/coracle" };
    char self[4096];
    ssize_t n;

    if (dir[0] != '\0')
        return (size_t)snprintf(ret, size, "%s/%s", dir, name) < size && access(ret, X_OK) == 0;
    n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        char *end = strrchr(self, '/');

        if (end == NULL)
            return false;
        *end = '\0';
        if ((size_t)snprintf(ret, size, "%s%s/%s", self, below[i], name) < size && access(ret, X_OK) == 0)
            return true;
    }
    return false;
}
