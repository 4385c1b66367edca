/* SPDX-License-Identifier: Apache-2.0 */
/* block - the device of a disk for containers: bound below the disk's folder, one file for each pod, and a
 * link to it in the pod's folder. The file is what makes the pod a user of the disk. */
#include "base/files/fs.h"
#include "base/scope.h"
#include "volumes/storage/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static bool file_of(const struct storage_disk *d, const char *uid, char *ret, size_t size)
{
    int n = snprintf(ret, size, "%s/%.64s", d->path, uid);

    return n > 0 && (size_t)n < size;
}

static enum err_code link_it(const char *file, const char *link_path, struct err *e)
{
    char now[STORAGE_PATH_MAX + 80];
    ssize_t n = readlink(link_path, now, sizeof(now) - 1);

    if (n > 0 && (size_t)n == strlen(file) && memcmp(now, file, (size_t)n) == 0)
        return ERR_OK;
    if (n >= 0 && unlink(link_path) != 0)
        return err_sys(e, errno, "remove %s", link_path);
    return symlink(file, link_path) == 0 ? ERR_OK : err_sys(e, errno, "link %s", link_path);
}

enum err_code storage_block_map(const struct storage_spec *s, const struct storage_disk *d,
                                const char *device, struct err *e)
{
    char file[STORAGE_PATH_MAX + 80];
    bool mounted = false;
    struct stat st;
    fd_auto fd = -1;

    if (stat(device, &st) != 0)
        return err_sys(e, errno, "stat %s", device);
    if (!S_ISBLK(st.st_mode))
        return err_set(e, ERR_PRECONDITION, "%s is not a block device", device);
    if (!file_of(d, s->pod_uid, file, sizeof(file)))
        return err_set(e, ERR_INVALID, "the path of the disk is too long");
    if (storage_is_mounted(file, &mounted, e) != ERR_OK)
        return e->code;
    if (!mounted) {
        fd = open(file, O_CREAT | O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return err_sys(e, errno, "create %s", file);
        if (mount(device, file, NULL, MS_BIND, NULL) != 0)
            return err_sys(e, errno, "bind %s to %s", device, file);
    }
    return link_it(file, s->target, e);
}

/* ---- the end ---- */

struct going {
    const char *uid;
    unsigned patience_ms;
    struct err e; /* the first failure */
};

struct bound { /* at a file */
    const char *file;
    char device[300]; /* "": none */
};

static bool note_device(const struct fs_mount *m, void *arg)
{
    struct bound *b = arg;

    if (strcmp(m->point, b->file) == 0)
        snprintf(b->device, sizeof(b->device), "/dev%.250s", m->root);
    return true;
}

static bool note_file(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

/* What is over the disk goes with its last user, unless somebody is about to use it. */
static void release(const struct storage_disk *d, const char *device)
{
    bool some = false;
    fd_auto lock = -1;

    if (storage_try_lock(d->lock, &lock, ERR_IGNORED) != ERR_OK || lock < 0 ||
        presence_is_unknown(fs_list(AT_FDCWD, d->path, note_file, &some, ERR_IGNORED)) || some)
        return;
    storage_device_release(device, d->kind == STORAGE_FC);
}

static bool unmap(const struct storage_disk *d, void *arg)
{
    struct going *g = arg;
    char file[STORAGE_PATH_MAX + 80];
    struct bound b = { .file = file };
    struct err e = { 0 };

    if (!d->block || !file_of(d, g->uid, file, sizeof(file)) || access(file, F_OK) != 0)
        return true;
    if (fs_each_mount(file, note_device, &b, &e) == ERR_OK &&
        storage_unmount(file, g->patience_ms, &e) == ERR_OK && unlink(file) != 0 && errno != ENOENT)
        err_sys(&e, errno, "remove %s", file);
    if (e.code == ERR_OK && b.device[0] != '\0')
        release(d, b.device);
    if (e.code != ERR_OK && g->e.code == ERR_OK)
        g->e = e;
    return true;
}

static void links_place(const char *root, const char *uid, enum storage_kind kind, char *ret, size_t size)
{
    snprintf(ret, size, "%.500s/pods/%.64s/volumeDevices/kubernetes.io~%s", root, uid,
             kind == STORAGE_FC ? "fc" : "iscsi");
}

static bool remove_link(const char *name, void *arg)
{
    char path[STORAGE_PATH_MAX + 300];

    snprintf(path, sizeof(path), "%s/%.255s", (const char *)arg, name);
    unlink(path);
    return true;
}

enum err_code storage_block_unmap(const char *root, const char *uid, enum storage_kind kind,
                                  unsigned patience_ms, struct err *e)
{
    struct going g = { .uid = uid, .patience_ms = patience_ms };
    char links[STORAGE_PATH_MAX];

    links_place(root, uid, kind, links, sizeof(links));
    if (access(links, F_OK) != 0)
        return ERR_OK;
    if (storage_disk_each(root, kind, unmap, &g, e) != ERR_OK)
        return e->code;
    if (g.e.code != ERR_OK) {
        *e = g.e;
        return e->code;
    }
    if (presence_is_unknown(fs_list(AT_FDCWD, links, remove_link, links, e)))
        return err_wrap(e, "list %s", links);
    return ERR_OK; /* the folder is removed after the disks are detached: until then this is repeated */
}

void storage_block_forget(const char *root, const char *uid, enum storage_kind kind)
{
    char links[STORAGE_PATH_MAX];

    links_place(root, uid, kind, links, sizeof(links));
    rmdir(links);
}

bool storage_block_has_any(const char *root, const char *uid)
{
    char links[STORAGE_PATH_MAX];

    for (enum storage_kind kind = STORAGE_ISCSI; kind <= STORAGE_FC; kind++) {
        links_place(root, uid, kind, links, sizeof(links));
        if (access(links, F_OK) == 0)
            return true;
    }
    return false;
}
