/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/put.h"

#include "base/files/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Fills SRC_PUT_NAME; returns an errno. Its owner is the agent, or the owner of `was`. */
static int fill(int folder, const struct stat *was, const char *text, size_t n, mode_t mode)
{
    fd_auto fd = -1;
    int sys = 0;

    /* This ensures that the name is neither a link nor another program's file, even if others may write into
     * the folder. */
    if (unlinkat(folder, SRC_PUT_NAME, 0) != 0 && errno != ENOENT)
        return errno;
    fd = openat(folder, SRC_PUT_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    sys = fs_write_all(fd, text, n);
    if (sys == 0 && was != NULL && (was->st_uid != geteuid() || was->st_gid != getegid()) &&
        fchown(fd, was->st_uid, was->st_gid) != 0)
        sys = errno;
    if (sys == 0 && fchmod(fd, mode) != 0)
        sys = errno;
    if (sys == 0 && fsync(fd) != 0)
        sys = errno;
    /* On file systems that write late (NFS, FUSE), only close() reports a full disk. */
    if (close(take_fd(&fd)) != 0 && sys == 0 && errno != EINTR)
        sys = errno;
    return sys;
}

enum err_code src_put_failed(struct err *e)
{
    /* A failure of the disk must not be reported as a missing permission or a missing object. */
    if (e->code != ERR_OK && e->code != ERR_EXHAUSTED)
        e->code = ERR_INTERNAL;
    return e->code;
}

static enum err_code done(int folder, const char *dir, struct err *e)
{
    if (fsync(folder) == 0)
        return ERR_OK;
    err_sys(e, errno, "the file was changed, but the folder could not be synced: sync %s", dir);
    return src_put_failed(e);
}

static enum err_code fail(int folder, int sys, const char *dir, const char *name, struct err *e)
{
    unlinkat(folder, SRC_PUT_NAME, 0);
    err_sys(e, sys, "write %s/%s", dir, name);
    return src_put_failed(e);
}

/* Renames to an unused name. Not every file system supports RENAME_NOREPLACE; link(2) refuses an existing
 * name on all that support links. */
static int rename_new(int folder, const char *name)
{
    if (renameat2(folder, SRC_PUT_NAME, folder, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL)
        return errno;
    if (linkat(folder, SRC_PUT_NAME, folder, name, 0) != 0)
        return errno;
    return unlinkat(folder, SRC_PUT_NAME, 0) == 0 ? 0 : errno;
}

enum err_code src_put_new(int folder, const char *dir, const char *name, const char *text, size_t n,
                          mode_t mode, struct err *e)
{
    int sys = fill(folder, NULL, text, n, mode);

    if (sys == 0)
        sys = rename_new(folder, name);
    if (sys != 0)
        ERR_IGNORE(fail(folder, sys, dir, name, e));
    if (sys == EEXIST)
        return err_set(e, ERR_EXISTS, "%s/%s exists", dir, name);
    return sys != 0 ? e->code : done(folder, dir, e);
}

/* Checks that the file is still the one that was read: an edit by rename or in place changes at least one of
 * these values. */
static enum err_code check_same(int folder, const char *name, const struct stat *was, struct err *e)
{
    struct stat now;

    if (fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) != 0)
        return err_set(e, ERR_ABORTED, "the file %s is gone", name);
    if (now.st_dev == was->st_dev && now.st_ino == was->st_ino && now.st_size == was->st_size &&
        now.st_mtim.tv_sec == was->st_mtim.tv_sec && now.st_mtim.tv_nsec == was->st_mtim.tv_nsec &&
        now.st_ctim.tv_sec == was->st_ctim.tv_sec && now.st_ctim.tv_nsec == was->st_ctim.tv_nsec)
        return ERR_OK;
    return err_set(e, ERR_ABORTED, "the file %s has changed", name);
}

enum err_code src_put_over(int folder, const char *dir, const char *name, const struct stat *was,
                           const char *text, size_t n, mode_t mode, struct err *e)
{
    int sys = fill(folder, was, text, n, mode);

    if (sys != 0)
        return fail(folder, sys, dir, name, e);
    if (check_same(folder, name, was, e) != ERR_OK) {
        unlinkat(folder, SRC_PUT_NAME, 0);
        return e->code;
    }
    if (renameat(folder, SRC_PUT_NAME, folder, name) != 0)
        return fail(folder, errno, dir, name, e);
    return done(folder, dir, e);
}

enum err_code src_put_remove(int folder, const char *dir, const char *name, const struct stat *was,
                             struct err *e)
{
    if (check_same(folder, name, was, e) != ERR_OK)
        return e->code;
    if (unlinkat(folder, name, 0) != 0) {
        err_sys(e, errno, "remove %s/%s", dir, name);
        return src_put_failed(e);
    }
    return done(folder, dir, e);
}

void src_put_sweep(const char *dir)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", dir, SRC_PUT_NAME) < (int)sizeof(path) && unlink(path) == 0)
        log_info("removed a manifest file that was not finished", F_STR("file", path));
}
