/* SPDX-License-Identifier: Apache-2.0 */
/* host_path - kubelet's hostPath types, with kubelet's error texts, for which people search. */
#include "base/files/fs.h"
#include "volumes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* Linux 5.12 */
#endif

enum create { CREATE_NOTHING, CREATE_FOLDER, CREATE_FILE };

static const struct host_path_type {
    const char *name;
    enum create create;
    mode_t kind; /* 0: anything */
    const char *what;
} types[] = {
    { "", CREATE_FOLDER, 0, "" },
    { "DirectoryOrCreate", CREATE_FOLDER, S_IFDIR, "a directory" },
    { "Directory", CREATE_NOTHING, S_IFDIR, "a directory" },
    { "FileOrCreate", CREATE_FILE, S_IFREG, "a file" },
    { "File", CREATE_NOTHING, S_IFREG, "a file" },
    { "Socket", CREATE_NOTHING, S_IFSOCK, "a socket file" },
    { "CharDevice", CREATE_NOTHING, S_IFCHR, "a character device" },
    { "BlockDevice", CREATE_NOTHING, S_IFBLK, "a block device" },
};

static bool has_dotdot(const char *path)
{
    for (const char *p = path; *p != '\0';) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return true;
        p += n;
        p += strspn(p, "/");
    }
    return false;
}

static enum err_code create_missing(const char *path, enum create create, struct err *e)
{
    if (create == CREATE_FOLDER)
        return fs_mkdirs(path, 0755, e);
    fd_auto fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644); /* does not make parents */
    if (fd < 0 && errno == ENOENT) /* kubelet's words, which become an event */
        return err_set(e, ERR_NOT_FOUND, "open %s: no such file or directory", path);
    if (fd < 0)
        return errno == EEXIST ? ERR_OK : err_sys(e, errno, "open %s", path);
    if (fchmod(fd, 0644) != 0) /* overrides our umask */
        return err_sys(e, errno, "chmod %s", path);
    return ERR_OK;
}

static const struct host_path_type *find_type(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

bool vol_host_path_known(const char *path, const char *type)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
    const struct host_path_type *t = find_type(type);
    struct statx st;

    if (t == NULL || path[0] != '/' || strlen(path) >= VOL_PATH_MAX || has_dotdot(path))
        return false;
    fd_auto fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    /* Major 0: not a disk, but a network, FUSE or virtual file system. */
    return fd >= 0 && statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
           st.stx_dev_major != 0 && (t->kind == 0 || (st.stx_mode & S_IFMT) == t->kind);
}

enum err_code vol_host_path_check(const char *path, const char *type, struct err *e)
{
    const struct host_path_type *t = find_type(type);
    struct stat st;

    if (t == NULL)
        return err_set(e, ERR_INVALID, "hostPath type check failed: \"%.64s\" is an invalid volume type",
                       type);
    if (path[0] != '/' || strlen(path) >= VOL_PATH_MAX)
        return err_set(e, ERR_INVALID, "hostPath type check failed: %.300s is not an absolute path", path);
    if (has_dotdot(path))
        return err_set(e, ERR_INVALID, "hostPath type check failed: %.300s must not contain '..'", path);

    bool there = stat(path, &st) == 0; /* symlinks are followed */
    if (!there && errno != ENOENT && errno != ENOTDIR)
        return err_sys(e, errno, "hostPath type check failed: stat %.300s", path);
    if (!there && t->create != CREATE_NOTHING) {
        if (create_missing(path, t->create, e) != ERR_OK)
            return e->code;
        there = stat(path, &st) == 0;
    }
    if (!there || (t->kind != 0 && (st.st_mode & S_IFMT) != t->kind))
        return err_set(e, ERR_PRECONDITION, "hostPath type check failed: %.400s is not %s", path,
                       t->kind != 0 ? t->what : "there");
    return ERR_OK;
}
