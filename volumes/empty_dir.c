/* SPDX-License-Identifier: Apache-2.0 */
/*
 * empty_dir - emptyDir volumes: a folder on the node's disk, or a tmpfs mounted on one.
 *
 * The folder is prepared under a temporary name and renamed. So if it exists under its own name, even after a
 * crash, it is ready and never touched again.
 */
#include "base/files/fs.h"
#include "volumes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define RW_DIR_BITS 02770 /* fsGroup on writable volumes; files 0660, but there are none yet */

#define TMP_SIZE 300
static void temporary_name(char ret[TMP_SIZE], const char *name)
{
    snprintf(ret, TMP_SIZE, ".%s.new", name); /* volume names never start with a dot */
}

static enum err_code empty_dir_make_folder(int parent, const char *name, int64_t fs_group, struct err *e)
{
    char tmp[TMP_SIZE];
    struct stat st;

    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return S_ISDIR(st.st_mode) ? ERR_OK
                                   : err_set(e, ERR_PRECONDITION, "%s exists and is not a folder", name);
    if (errno != ENOENT)
        return err_sys(e, errno, "stat %s", name);
    temporary_name(tmp, name);
    if (mkdirat(parent, tmp, 0700) != 0 && errno != EEXIST)
        return err_sys(e, errno, "mkdir %s", tmp);
    fd_auto dir = openat(parent, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, errno, "open %s", tmp);
    if (fs_group >= 0 && fchown(dir, (uid_t)-1, (gid_t)fs_group) != 0)
        return err_sys(e, errno, "set group of %s", tmp);
    if (fchmod(dir, 0777 | (fs_group >= 0 ? RW_DIR_BITS : 0)) != 0)
        return err_sys(e, errno, "chmod %s", tmp);
    if (renameat(parent, tmp, parent, name) != 0)
        return err_sys(e, errno, "rename %s", name);
    return ERR_OK;
}

/* Like kubelet: accessible to root only, unless fsGroup adds the group. */
static enum err_code mount_huge(const char *path, const struct vol_empty_dir *v, struct err *e)
{
    char options[160];
    uint64_t page = v->huge_page_bytes, size = v->size_bytes;
    int n = snprintf(options, sizeof(options), "pagesize=%" PRIu64 ",mode=0755", page);

    if (v->fs_group >= 0)
        n += snprintf(options + n, sizeof(options) - (size_t)n, ",gid=%" PRId64, v->fs_group);
    if (size > 0) /* the kernel rounds down, and less than a page would become zero */
        snprintf(options + n, sizeof(options) - (size_t)n, ",size=%" PRIu64,
                 size % page == 0 ? size : size - size % page + page);
    if (mount("nodev", path, "hugetlbfs", 0, options) != 0)
        return err_sys(e, errno, "mount hugetlbfs on %s (%s)", path, options);
    return ERR_OK;
}

/* hugetlbfs' mode option does not accept a set-group-ID bit. */
static enum err_code open_to_group(const char *path, struct err *e)
{
    struct stat st;
    fd_auto fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0)
        return err_sys(e, errno, "open %s", path);
    if ((st.st_mode & S_ISGID) == 0 && fchmod(fd, (st.st_mode & 07777) | RW_DIR_BITS) != 0)
        return err_sys(e, errno, "chmod %s", path);
    return ERR_OK;
}

static enum err_code set_up_huge(const char *path, const struct vol_empty_dir *v, struct err *e)
{
    struct presence mounted = vol_is_mounted(path, "hugetlbfs", NULL, e);

    if (presence_is_unknown(mounted) || (presence_is_absent(mounted) && mount_huge(path, v, e) != ERR_OK))
        return e->code;
    return v->fs_group >= 0 ? open_to_group(path, e) : ERR_OK;
}

static enum err_code set_up_memory(const char *path, const struct vol_empty_dir *v, struct err *e)
{
    const struct vol_tmpfs t = {
        .size_bytes = v->size_bytes,
        .mode = 01777 | (v->fs_group >= 0 ? RW_DIR_BITS : 0),
        .gid = v->fs_group,
    };
    struct presence mounted = vol_is_mounted(path, "tmpfs", NULL, e);

    if (presence_is_unknown(mounted) ||
        (presence_is_absent(mounted) && vol_tmpfs_mount(path, &t, NULL, e) != ERR_OK))
        return e->code;
    return ERR_OK;
}

enum err_code vol_empty_dir_prepare(struct vol_node *n, const char *uid, const char *name, char *ret_path,
                                    size_t size, struct err *e)
{
    char parent[512], tmp[TMP_SIZE];

    if (vol_check_name("pod uid", uid, e) != ERR_OK || vol_check_name("volume", name, e) != ERR_OK)
        return e->code;
    temporary_name(tmp, name);
    if (vol_join(parent, sizeof(parent), e, "%s/volumes/kubernetes.io~empty-dir", uid) != ERR_OK ||
        vol_join(ret_path, size, e, "%s/%s/%s", n->pods, parent, tmp) != ERR_OK ||
        fs_mkdirs_beneath(n->pods_fd, parent, 0750, e) != ERR_OK)
        return err_wrap(e, "volume %s", name);
    if (mkdir(ret_path, 0700) != 0 && errno != EEXIST)
        return err_sys(e, errno, "volume %s: mkdir %s", name, ret_path);
    return ERR_OK;
}

/* A set-up renames it, so the temporary name is checked first. */
struct presence vol_empty_dir_exists(const char *path, struct err *e)
{
    const char *name = strrchr(path, '/');
    char tmp[TMP_SIZE];
    struct presence there;

    if (name == NULL || strlen(name) > NAME_MAX)
        return presence_absent();
    temporary_name(tmp, name + 1);
    str_auto other = str_printf("%.*s/%s", (int)(name - path), path, tmp);
    if (other == NULL) {
        err_set(e, ERR_EXHAUSTED, "out of memory");
        return presence_unknown(e);
    }
    there = fs_look_at(AT_FDCWD, other, NULL, e);
    return presence_is_absent(there) ? fs_look_at(AT_FDCWD, path, NULL, e) : there;
}

enum err_code vol_empty_dir_setup(struct vol_node *n, const struct vol_empty_dir *v, char *ret_path,
                                  size_t size, struct err *e)
{
    char parent[512], path[VOL_PATH_MAX];

    if (vol_check_name("pod uid", v->uid, e) != ERR_OK || vol_check_name("volume", v->name, e) != ERR_OK)
        return e->code;
    if (v->fs_group > UINT32_MAX - 1)
        return err_set(e, ERR_INVALID, "volume %s: fsGroup %lld is not a group id", v->name,
                       (long long)v->fs_group);
    if (vol_join(parent, sizeof(parent), e, "%s/volumes/kubernetes.io~empty-dir", v->uid) != ERR_OK ||
        vol_join(path, sizeof(path), e, "%s/%s/%s", n->pods, parent, v->name) != ERR_OK ||
        fs_mkdirs_beneath(n->pods_fd, parent, 0750, e) != ERR_OK)
        return err_wrap(e, "volume %s", v->name);
    fd_auto dir = openat(n->pods_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, errno, "volume %s: open %s", v->name, parent);
    if (empty_dir_make_folder(dir, v->name, v->fs_group, e) != ERR_OK)
        return err_wrap(e, "volume %s", v->name);
    if (v->huge_page_bytes > 0) {
        if (set_up_huge(path, v, e) != ERR_OK)
            return err_wrap(e, "volume %s", v->name);
    } else if (v->memory && set_up_memory(path, v, e) != ERR_OK) {
        return err_wrap(e, "volume %s", v->name);
    }
    return vol_join(ret_path, size, e, "%s", path);
}
