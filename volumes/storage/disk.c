/* SPDX-License-Identifier: Apache-2.0 */
/* disk - disks that are mounted once for all pods, or whose device is bound for each of them. */
#include "base/files/fs.h"
#include "base/scope.h"
#include "volumes/storage/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLUGINS "plugins/kubernetes.io"

/* Where the folders of a kind are; of iscsi, one folder for each interface is between. */
static void disks_place(const char *root, enum storage_kind kind, bool block, char ret[STORAGE_PATH_MAX])
{
    const char *where = kind == STORAGE_ISCSI ? (block ? "iscsi/volumeDevices" : "iscsi")
                        : kind == STORAGE_FC  ? (block ? "fc/volumeDevices" : "fc")
                                              : "local-volume/mounts";

    snprintf(ret, STORAGE_PATH_MAX, "%.500s/" PLUGINS "/%s", root, where);
}

/* A session belongs to a target: its disks are attached and detached one at a time. */
static bool lock_place(const struct storage_disk *d, const char *root, char ret[STORAGE_PATH_MAX])
{
    char dir[STORAGE_PATH_MAX], target[256];
    int n;

    disks_place(root, d->kind, false, dir);
    if (d->kind == STORAGE_ISCSI && !storage_iscsi_target(d->name, target, sizeof(target)))
        return false;
    n = snprintf(ret, STORAGE_PATH_MAX, "%s/%s", dir, d->kind == STORAGE_ISCSI ? target : d->name);
    return n > 0 && n < STORAGE_PATH_MAX;
}

enum err_code storage_disk_make(struct storage_disk *ret, const char *root, enum storage_kind kind,
                                bool block, const char *iface, const char *name, struct err *e)
{
    struct storage_disk d = { .kind = kind, .block = block };
    char dir[STORAGE_PATH_MAX];
    int n;

    disks_place(root, kind, block, dir);
    if (strlen(name) >= sizeof(d.name) || strlen(iface) >= sizeof(d.iface))
        return err_set(e, ERR_INVALID, "the name of the disk is too long");
    strcpy(d.name, name);
    strcpy(d.iface, iface);
    n = kind == STORAGE_ISCSI ? snprintf(d.path, sizeof(d.path), "%s/iface-%s/%s", dir, iface, name)
                              : snprintf(d.path, sizeof(d.path), "%s/%s", dir, name);
    if (n <= 0 || (size_t)n >= sizeof(d.path) || !lock_place(&d, root, d.lock))
        return err_set(e, ERR_INVALID, "\"%.100s\" is not a valid disk name", name);
    *ret = d;
    return ERR_OK;
}

/* ---- all of them ---- */

struct walk {
    const char *root;
    enum storage_kind kind;
    bool block;
    const char *iface;
    bool (*fn)(const struct storage_disk *d, void *arg);
    void *arg;
    struct err e; /* the first failure */
    bool stopped;
};

static bool look_at_disk(const char *name, void *arg)
{
    struct walk *w = arg;
    struct storage_disk d;

    if (name[0] == '.' || strcmp(name, "volumeDevices") == 0 || /* foreign entries stay */
        storage_disk_make(&d, w->root, w->kind, w->block, w->iface, name, ERR_IGNORED) != ERR_OK)
        return true;
    w->stopped = !w->fn(&d, w->arg);
    return !w->stopped;
}

static void list(struct walk *w, const char *path, bool (*fn)(const char *name, void *arg))
{
    struct err e = { 0 };

    if (presence_is_unknown(fs_list(AT_FDCWD, path, fn, w, &e)) && w->e.code == ERR_OK)
        w->e = e;
}

static bool look_at_iface(const char *name, void *arg)
{
    struct walk *w = arg;
    char dir[STORAGE_PATH_MAX], path[STORAGE_PATH_MAX + 300];

    if (strncmp(name, "iface-", 6) != 0)
        return true;
    disks_place(w->root, w->kind, w->block, dir);
    snprintf(path, sizeof(path), "%s/%.255s", dir, name);
    w->iface = name + 6;
    list(w, path, look_at_disk);
    return !w->stopped;
}

enum err_code storage_disk_each(const char *root, enum storage_kind kind,
                                bool (*fn)(const struct storage_disk *d, void *arg), void *arg, struct err *e)
{
    struct walk w = { .root = root, .kind = kind, .iface = "", .fn = fn, .arg = arg };
    char dir[STORAGE_PATH_MAX];

    for (int block = 0; block < 2 && !w.stopped && (block == 0 || kind != STORAGE_LOCAL); block++) {
        w.block = block != 0;
        disks_place(root, kind, w.block, dir);
        list(&w, dir, kind == STORAGE_ISCSI ? look_at_iface : look_at_disk);
    }
    if (w.e.code != ERR_OK)
        *e = w.e;
    return e->code;
}

/* ---- a mount ---- */

static enum err_code make_folders(const struct storage_spec *s, const struct storage_disk *d, struct err *e)
{
    char parent[STORAGE_PATH_MAX];
    const char *slash = strrchr(s->target, '/');

    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - s->target), s->target);
    if (storage_make_folder(s->block ? parent : s->target, e) != ERR_OK)
        return e->code;
    return storage_make_folder(d->path, e);
}

enum err_code storage_disk_mount(const struct storage_spec *s, const struct storage_disk *d,
                                 storage_attach_fn attach, const void *arg, struct err *e)
{
    char device[300];
    fd_auto lock = -1;

    if (make_folders(s, d, e) != ERR_OK || storage_lock(d->lock, &lock, e) != ERR_OK ||
        storage_make_folder(d->path, e) != ERR_OK) /* the last pod may just have left */
        return e->code;
    storage_at(s->step, STORAGE_ATTACH);
    if (attach(s, arg, device, sizeof(device), e) != ERR_OK)
        return e->code;
    storage_at(s->step, STORAGE_SET_UP);
    return s->block ? storage_block_map(s, d, device, e) : storage_mount_locked(s, device, d->path, e);
}

enum err_code storage_disk_folder(const struct storage_spec *s, char *ret, size_t size, struct err *e)
{
    struct storage_disk d;

    if ((s->kind == STORAGE_FC ? storage_fc_disk(s, &d, e) : storage_iscsi_disk(s, &d, e)) == ERR_OK)
        snprintf(ret, size, "%s", d.path);
    return e->code;
}
