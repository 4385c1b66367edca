/* SPDX-License-Identifier: Apache-2.0 */
/* device - disks: formatted if they are empty, mounted once, and bound to each pod. Rules of
 * SafeFormatAndMount (k8s.io/mount-utils/mount_linux.go): a disk with anything on it is never formatted. */
#include "base/files/fs.h"
#include "volumes/storage/internal.h"
#include "volumes/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define BLKID_EMPTY 2 /* blkid: nothing was found */

struct looking {
    const char *path;
    bool found;
};

static bool look(const struct fs_mount *m, void *arg)
{
    struct looking *l = arg;

    l->found = l->found || strcmp(m->point, l->path) == 0;
    return !l->found;
}

enum err_code storage_is_mounted(const char *path, bool *ret, struct err *e)
{
    struct looking l = { .path = path };

    if (fs_each_mount(path, look, &l, e) != ERR_OK)
        return e->code;
    *ret = l.found;
    return ERR_OK;
}

enum err_code storage_make_folder(const char *path, struct err *e)
{
    return fs_mkdirs(path, 0750, e) == ERR_OK ? ERR_OK : err_wrap(e, "create %s", path);
}

enum err_code storage_set_group(const struct storage_spec *s, struct err *e)
{
    if (s->fs_group < 0 || s->read_only || (s->group_if_wrong && vol_group_is(s->target, s->fs_group)))
        return ERR_OK;
    return vol_group_set(s->target, s->fs_group, e);
}

enum err_code storage_bind(const struct storage_spec *s, const char *from, struct err *e)
{
    bool mounted = false;

    if (storage_make_folder(s->target, e) != ERR_OK || storage_is_mounted(s->target, &mounted, e) != ERR_OK)
        return e->code;
    if (!mounted && mount(from, s->target, NULL, MS_BIND, NULL) != 0)
        return err_sys(e, errno, "bind %s", from);
    if (s->read_only && mount(NULL, s->target, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return err_sys(e, errno, "make %s read-only", s->target);
    return ERR_OK;
}

enum err_code storage_find_type(const char *device, char *ret, size_t size, struct err *e)
{
    const char *const args[] = { "-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device, NULL };
    buf_auto out = BUF_INIT(2 * STORAGE_OUT_MAX);
    int code = 0;
    const struct storage_run run = {
        .program = "blkid", .package = "util-linux", .args = args, .out = &out, .ret_exit = &code
    };
    const char *type;

    ret[0] = '\0';
    if (storage_run(&run, e) != ERR_OK)
        return e->code;
    if (code == BLKID_EMPTY)
        return ERR_OK;
    if (code != 0)
        return err_set(e, ERR_UNKNOWN, "blkid %s: exit status %d", device, code);
    type = out.p != NULL ? strstr(out.p, "\nTYPE=") : NULL;
    if (type == NULL && out.p != NULL && strncmp(out.p, "TYPE=", 5) == 0)
        type = out.p - 1;
    if (type == NULL)
        return err_set(e, ERR_PRECONDITION, "disk %s has no file system, but is not empty", device);
    snprintf(ret, size, "%.*s", (int)strcspn(type + 6, "\n"), type + 6);
    return ERR_OK;
}

static enum err_code format(const char *device, const char *type, struct err *e)
{
    const bool ext = strncmp(type, "ext", 3) == 0;
    const char *const of_ext[] = { "-F", "-m0", device, NULL }, *const others[] = { device, NULL };
    const char *package = ext                          ? "e2fsprogs"
                          : strcmp(type, "xfs") == 0   ? "xfsprogs"
                          : strcmp(type, "btrfs") == 0 ? "btrfs-progs"
                                                       : "its tools";
    char program[64];

    if (strlen(type) > 32 || strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(type))
        return err_set(e, ERR_INVALID, "\"%.40s\" is not a file system type", type);
    snprintf(program, sizeof(program), "mkfs.%s", type);
    return storage_run(
        &(struct storage_run){ .program = program, .package = package, .args = ext ? of_ext : others }, e);
}

/* fsck(8): 1 means that errors were corrected, 4 that they were not. */
static enum err_code check(const char *device, struct err *e)
{
    const char *const args[] = { "-a", device, NULL };
    int code = 0;
    struct err ignored = { 0 };

    if (storage_run(
            &(struct storage_run){
                .program = "fsck", .package = "util-linux", .args = args, .ret_exit = &code },
            &ignored) == ERR_OK &&
        code == 4)
        return err_set(e, ERR_DATA_LOSS, "fsck found errors on %s that it could not correct", device);
    return ERR_OK;
}

enum err_code storage_mount_disk(const struct storage_spec *s, const char *device, const char *global,
                                 struct err *e)
{
    const char *wanted = s->fs_type != NULL && s->fs_type[0] != '\0' ? s->fs_type : "ext4";
    str_auto options = storage_join_options(s, s->read_only ? "ro,defaults" : "defaults");
    const char *const args[] = { "-t", wanted, "-o", options, device, global, NULL };
    char type[64];

    if (options == NULL)
        return err_nomem(e);
    if (storage_find_type(device, type, sizeof(type), e) != ERR_OK)
        return e->code;
    if (type[0] == '\0' && s->read_only)
        return err_set(e, ERR_PRECONDITION, "cannot mount unformatted disk %s as it is in read-only mode",
                       device);
    if (type[0] == '\0' && format(device, wanted, e) != ERR_OK)
        return e->code;
    if (type[0] != '\0' && !s->read_only && check(device, e) != ERR_OK)
        return e->code;
    if (type[0] != '\0' && strcmp(type, wanted) != 0)
        return err_set(e, ERR_PRECONDITION, "disk %s has a file system of type %.40s, not %.40s", device,
                       type, wanted);
    return storage_run(&(struct storage_run){ .program = "mount", .package = "mount", .args = args }, e);
}

enum err_code storage_mount_locked(const struct storage_spec *s, const char *device, const char *global,
                                   struct err *e)
{
    bool mounted = false;

    storage_at(s->step, STORAGE_MOUNT_DEVICE);
    if (storage_is_mounted(global, &mounted, e) != ERR_OK ||
        (!mounted && storage_mount_disk(s, device, global, e) != ERR_OK))
        return e->code;
    storage_at(s->step, STORAGE_SET_UP);
    if (storage_bind(s, global, e) != ERR_OK)
        return e->code;
    return storage_set_group(s, e);
}

enum err_code storage_mount_device(const struct storage_spec *s, const char *device, const char *global,
                                   struct err *e)
{
    fd_auto lock = -1;

    if (storage_make_folder(global, e) != ERR_OK || storage_lock(global, &lock, e) != ERR_OK ||
        storage_make_folder(global, e) != ERR_OK) /* the last pod may just have left */
        return e->code;
    if (storage_mount_locked(s, device, global, e) != ERR_OK)
        rmdir(global); /* unless it is mounted */
    return e->code;
}

/* ---- finding disks ---- */

enum err_code storage_wait_for(const char *const *paths, size_t n, unsigned ms, char *ret, size_t size,
                               struct err *e)
{
    for (unsigned waited = 0;; waited += 200) {
        for (size_t i = 0; i < n; i++) {
            char *real = realpath(paths[i], NULL);

            if (real != NULL) {
                snprintf(ret, size, "%s", real);
                free(real);
                return ERR_OK;
            }
        }
        if (waited >= ms)
            break;
        usleep(200 * 1000);
    }
    return err_set(e, ERR_UNAVAILABLE, "disk %.200s did not appear within %u s", n > 0 ? paths[0] : "",
                   ms / 1000);
}
