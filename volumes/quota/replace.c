/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/fs.h"
#include "volumes/quota/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Opens the folder; *ret_name points into path. */
static int open_folder(const char *path, const char **ret_name, char tmp[256], struct err *e)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];
    int fd;

    *ret_name = slash == NULL ? path : slash + 1;
    snprintf(folder, sizeof(folder), "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    if (snprintf(tmp, 256, ".%s.coracle", *ret_name) >= 256) {
        (void)err_sys(e, ENAMETOOLONG, "open folder of %s", path);
        return -1;
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        (void)err_sys(e, errno, "open folder of %s", path);
    return fd;
}

void quota_replace_clean(const char *path)
{
    const char *name;
    char tmp[256];
    fd_auto folder = open_folder(path, &name, tmp, ERR_IGNORED);

    if (folder >= 0)
        unlinkat(folder, tmp, 0);
}

static int fill(int folder, const char *tmp, const char *text, size_t n, mode_t mode)
{
    fd_auto fd = openat(folder, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int sys;

    if (fd < 0)
        return errno;
    sys = fs_write_all(fd, text, n);
    if (sys == 0 && (fchmod(fd, mode) != 0 || fsync(fd) != 0))
        sys = errno;
    return sys;
}

enum err_code quota_replace_file(const char *path, const char *text, size_t n, mode_t mode, bool sync_folder,
                                 bool *ret_replaced, struct err *e)
{
    const char *name;
    char tmp[256];
    fd_auto folder = open_folder(path, &name, tmp, e);
    int sys;

    *ret_replaced = false;
    if (folder < 0)
        return e->code;
    if (unlinkat(folder, tmp, 0) != 0 && errno != ENOENT)
        return err_sys(e, errno, "write %s", path);
    sys = fill(folder, tmp, text, n, mode);
    if (sys == 0 && renameat(folder, tmp, folder, name) != 0)
        sys = errno;
    if (sys != 0) {
        unlinkat(folder, tmp, 0);
        return err_sys(e, sys, "write %s", path);
    }
    *ret_replaced = true;
    if (sync_folder && fsync(folder) != 0)
        return err_sys(e, errno, "sync folder of %s", path);
    return ERR_OK;
}
