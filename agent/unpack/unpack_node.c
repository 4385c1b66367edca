/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack_node.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

enum err_code unpack_meta_read(struct unpack_meta *ret, struct archive_entry *entry, const char *path,
                               struct err *e)
{
    const int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);

    if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX) /* UINT32_MAX: "do not change" */
        return err_set(e, ERR_INVALID, "owner %lld:%lld of \"%.200s\" is out of range", (long long)uid,
                       (long long)gid, path);
    *ret = (struct unpack_meta){
        .uid = (uid_t)uid,
        .gid = (gid_t)gid,
        .mode = archive_entry_perm(entry) & 07777,
        .mtime = { .tv_sec = archive_entry_mtime(entry), .tv_nsec = archive_entry_mtime_nsec(entry) },
    };
    if (!archive_entry_mtime_is_set(entry))
        ret->mtime = (struct timespec){ 0 };
    if (ret->mtime.tv_nsec < 0 || ret->mtime.tv_nsec > 999999999)
        ret->mtime.tv_nsec = 0;
    return ERR_OK;
}

/*
 * Attributes of trusted.* control overlayfs, those of system.* hold ACLs, which no image relies on, and other
 * security.* attributes belong to the host.
 */
bool unpack_attribute_is_kept(const char *name)
{
    if (strcmp(name, "security.capability") == 0)
        return true;
    return str_starts(name, "user.") && !str_starts(name, "user.overlay.");
}

static enum err_code set_attributes(int fd, struct archive_entry *entry, const char *path, struct err *e)
{
    const char *name;
    const void *value;
    size_t n;

    archive_entry_xattr_reset(entry);
    while (archive_entry_xattr_next(entry, &name, &value, &n) == ARCHIVE_OK) {
        if (name == NULL || !unpack_attribute_is_kept(name) || fsetxattr(fd, name, value, n, 0) == 0)
            continue;
        if (errno == EOPNOTSUPP && str_starts(name, "user."))
            continue; /* the file system has none; harmless, and other runtimes ignore it too */
        return err_sys(e, errno, "set attribute %.100s of \"%.200s\"", name, path);
    }
    return ERR_OK;
}

enum err_code unpack_meta_apply(const struct unpack_meta *m, int fd, struct archive_entry *entry,
                                const char *path, struct err *e)
{
    if (fchown(fd, m->uid, m->gid) != 0)
        return err_sys(e, errno, "set the owner of \"%.200s\"", path);
    if (fchmod(fd, m->mode) != 0)
        return err_sys(e, errno, "set the mode of \"%.200s\"", path);
    return set_attributes(fd, entry, path, e);
}

enum err_code unpack_set_time(int fd, const char *leaf, struct timespec mtime, const char *path,
                              struct err *e)
{
    const struct timespec times[2] = { mtime, mtime };
    int failed = leaf == NULL ? futimens(fd, times) : utimensat(fd, leaf, times, AT_SYMLINK_NOFOLLOW);

    if (failed != 0)
        return err_sys(e, errno, "set the time of \"%.200s\"", path);
    return ERR_OK;
}

enum err_code unpack_set_opaque(int fd, const char *path, struct err *e)
{
    if (fsetxattr(fd, UNPACK_OPAQUE_ATTRIBUTE, "y", 1, 0) != 0)
        return err_sys(e, errno, "set attribute " UNPACK_OPAQUE_ATTRIBUTE " for \"%.200s\"", path);
    return ERR_OK;
}

bool unpack_is_opaque(int fd)
{
    char value = '\0';

    return fgetxattr(fd, UNPACK_OPAQUE_ATTRIBUTE, &value, 1) == 1 && value == 'y';
}

bool unpack_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static enum err_code unpack_node_write_all(int fd, const char *data, size_t n, int64_t offset,
                                           const char *path, struct err *e)
{
    while (n > 0) {
        ssize_t put = pwrite(fd, data, n, offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return err_sys(e, errno, "write \"%.200s\"", path);
        data += put;
        offset += put;
        n -= (size_t)put;
    }
    return ERR_OK;
}

enum err_code unpack_copy_data(struct archive *a, int fd, int64_t size, const char *path, struct err *e)
{
    int64_t end = 0;

    for (;;) {
        const void *data;
        size_t n;
        la_int64_t offset;
        int r = archive_read_data_block(a, &data, &n, &offset);

        if (r == ARCHIVE_EOF)
            break;
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
            return unpack_archive_error(a, path, e);
        if (offset < end || offset > size || (int64_t)n > size - offset)
            return err_set(e, ERR_INVALID, "file \"%.200s\" has data outside of its size", path);
        if (unpack_node_write_all(fd, data, n, offset, path, e) != ERR_OK)
            return e->code;
        end = offset + (int64_t)n;
    }
    if (end < size && ftruncate(fd, size) != 0)
        return err_sys(e, errno, "set the size of \"%.200s\"", path);
    return ERR_OK;
}
