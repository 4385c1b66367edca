/* SPDX-License-Identifier: Apache-2.0 */
/* lock - one at a time at the mount of a disk: pods come and go at once, each in a child of its own. The file
 * is beside the folder, since the folder is mounted over. */
#include "base/scope.h"
#include "volumes/storage/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool name_of(const char *global, char *ret, size_t size)
{
    const char *base = strrchr(global, '/');
    int n = base == NULL ? -1 : snprintf(ret, size, "%.*s/.%s.lock", (int)(base - global), global, base + 1);

    return n > 0 && (size_t)n < size && strlen(base + 1) < 240;
}

static enum err_code lock(const char *global, int how, int *ret_fd, struct err *e)
{
    char path[STORAGE_PATH_MAX + 8];
    struct stat held, named;

    if (!name_of(global, path, sizeof(path)))
        return err_set(e, ERR_INVALID, "the path of the disk's mount is too long");
    for (;;) {
        fd_auto fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd >= 0 && flock(fd, how) != 0 && errno == EWOULDBLOCK) {
            *ret_fd = -1;
            return ERR_OK;
        }
        if (fd < 0 || fstat(fd, &held) != 0)
            return err_sys(e, errno, "lock %s", path);
        /* Somebody may have removed it while we waited. */
        if (stat(path, &named) == 0 && held.st_ino == named.st_ino) {
            *ret_fd = take_fd(&fd);
            return ERR_OK;
        }
    }
}

enum err_code storage_lock(const char *global, int *ret_fd, struct err *e)
{
    return lock(global, LOCK_EX, ret_fd, e);
}

enum err_code storage_try_lock(const char *global, int *ret_fd, struct err *e)
{
    return lock(global, LOCK_EX | LOCK_NB, ret_fd, e);
}

void storage_lock_remove(const char *global)
{
    char path[STORAGE_PATH_MAX + 8];

    if (name_of(global, path, sizeof(path)))
        unlink(path);
}
