/* SPDX-License-Identifier: Apache-2.0 */
/* The group of a tree: kubelet's pkg/volume/volume_linux.go (SetVolumeOwnership). */
#include "base/files/fs.h"
#include "volumes/volumes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RW_FILE_BITS 0660
#define RW_DIR_BITS ((mode_t)(S_ISGID | 0770))

bool vol_group_is(const char *path, int64_t group)
{
    struct stat st;

    return lstat(path, &st) == 0 && (int64_t)st.st_gid == group && (st.st_mode & RW_DIR_BITS) == RW_DIR_BITS;
}

/* `fd` may be O_PATH: nothing is opened, since a device may act on that. */
static enum err_code give(int fd, const struct stat *st, gid_t group, mode_t bits, struct err *e)
{
    char link[40];

    if (fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH) != 0)
        return err_sys(e, errno, "change the group");
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (bits != 0 && chmod(link, (st->st_mode & 07777) | bits) != 0) /* chown(2) clears set-ID bits */
        return err_sys(e, errno, "change the mode");
    return ERR_OK;
}

static enum err_code give_tree(int at, const struct stat *st, gid_t group, unsigned depth, struct err *e);

static enum err_code give_entry(int dir, const char *name, const struct stat *of_dir, gid_t group,
                                unsigned depth, struct err *e)
{
    struct stat st;
    fd_auto fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) /* removed meanwhile */
        return ERR_OK;
    if (fd < 0 || fstat(fd, &st) != 0)
        return err_sys(e, errno, "open %s", name);
    if (st.st_dev != of_dir->st_dev)
        return ERR_OK;
    if (S_ISDIR(st.st_mode))
        return give_tree(fd, &st, group, depth + 1, e);
    return give(fd, &st, group, S_ISREG(st.st_mode) ? RW_FILE_BITS : 0, e);
}

static enum err_code give_tree(int at, const struct stat *st, gid_t group, unsigned depth, struct err *e)
{
    int copy = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *d;

    if (list == NULL) {
        err_sys(e, errno, "read a folder");
        if (copy >= 0)
            close(copy);
        return e->code;
    }
    if (depth > VOL_GROUP_DEPTH_MAX)
        err_set(e, ERR_EXHAUSTED, "folders are nested more than %d deep", VOL_GROUP_DEPTH_MAX);
    while (e->code == ERR_OK && (d = readdir(list)) != NULL)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
            give_entry(dirfd(list), d->d_name, st, group, depth, e) != ERR_OK)
            break;
    closedir(list);
    return e->code != ERR_OK ? e->code : give(at, st, group, RW_DIR_BITS, e);
}

enum err_code vol_group_set(const char *path, int64_t group, struct err *e)
{
    struct stat st;
    fd_auto dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (group < 0 || group > UINT32_MAX - 1)
        return err_set(e, ERR_INVALID, "fsGroup %lld is not a group id", (long long)group);
    if (dir < 0 || fstat(dir, &st) != 0)
        return err_sys(e, errno, "open %s", path);
    if (give_tree(dir, &st, (gid_t)group, 0, e) != ERR_OK)
        return err_wrap(e, "fsGroup of %s", path);
    return ERR_OK;
}
