/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing - lets the next calls of one kind fail whose path has a certain part: failing_arm().  The program's
 * own open(), openat(), fstatat(), statx(), statfs(), unlinkat() and readdir() stand in for glibc's.  Include
 * it in one file of the program only.
 */
#ifndef TESTS_UNIT_BASE_FAILING_H
#define TESTS_UNIT_BASE_FAILING_H
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char *failing_call, *failing_part;
static int failing_errno;
static unsigned failing_times; /* still to fail */

/* `part` "": any path.  readdir() has no path. */
static void failing_arm(const char *call, const char *part, int sys, unsigned times)
{
    failing_call = call;
    failing_part = part;
    failing_errno = sys;
    failing_times = times;
}

static int failing_now(const char *call, const char *path)
{
    if (failing_times == 0 || strcmp(call, failing_call) != 0 || strstr(path, failing_part) == NULL)
        return 0;
    failing_times--;
    errno = failing_errno;
    return 1;
}

/* NOLINTBEGIN: glibc's names and parameters */
int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return failing_now("statx", path) ? -1 : (int)syscall(SYS_statx, dir, path, flags, mask, ret);
}

int fstatat(int dir, const char *path, struct stat *ret, int flags)
{
    return failing_now("fstatat", path) ? -1 : (int)syscall(SYS_newfstatat, dir, path, ret, flags);
}

int unlinkat(int dir, const char *path, int flags)
{
    return failing_now("unlinkat", path) ? -1 : (int)syscall(SYS_unlinkat, dir, path, flags);
}

int statfs(const char *path, struct statfs *ret)
{
    return failing_now("statfs", path) ? -1 : (int)syscall(SYS_statfs, path, ret);
}

int openat(int dir, const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return failing_now("openat", path) ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return failing_now("openat", path) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

struct dirent *readdir(DIR *dir)
{
    static struct dirent *(*real)(DIR *);

    if (real == NULL)
        real = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    return failing_now("readdir", "") ? NULL : real(dir);
}
/* NOLINTEND */
#endif
