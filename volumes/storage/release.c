/* SPDX-License-Identifier: Apache-2.0 */
/* release - disks that no pod uses any more: unmounted, logged out, removed from the node. What is there is
 * read from folders and mountinfo, so that a call after a kill finds what an earlier one left. */
#include "base/files/fs.h"
#include "base/scope.h"
#include "volumes/storage/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct at { /* the mount at a path */
    const char *path;
    char *source; /* of a device file: the device */
};

static bool note_at(const struct fs_mount *m, void *arg)
{
    struct at *a = arg;

    if (strcmp(m->point, a->path) != 0)
        return true;
    free(a->source);
    a->source = strdup(m->source);
    return true;
}

struct user {
    const char *source;
    bool found;
};

static bool note_user(const struct fs_mount *m, void *arg)
{
    struct user *u = arg;

    u->found = strcmp(m->source, u->source) == 0;
    return !u->found;
}

static enum err_code is_source_used(const char *root, const char *source, bool *ret, struct err *e)
{
    struct user u = { .source = source };
    char pods[STORAGE_PATH_MAX];

    snprintf(pods, sizeof(pods), "%.700s/pods", root);
    if (fs_each_mount(pods, note_user, &u, e) != ERR_OK)
        return e->code;
    *ret = u.found;
    return ERR_OK;
}

/* ---- the last disk of a target ---- */

struct siblings {
    const struct storage_disk *of;
    const char *target;
    bool some;
};

static bool look_at_sibling(const struct storage_disk *d, void *arg)
{
    struct siblings *s = arg;
    char target[256];

    s->some = strcmp(d->path, s->of->path) != 0 && strcmp(d->iface, s->of->iface) == 0 &&
              storage_iscsi_target(d->name, target, sizeof(target)) && strcmp(target, s->target) == 0;
    return !s->some;
}

/* Another disk of the target keeps the sessions. */
static enum err_code log_out(const char *root, const struct storage_disk *d, struct err *e)
{
    char target[256];
    struct siblings s = { .of = d, .target = target };

    if (!storage_iscsi_target(d->name, target, sizeof(target)))
        return ERR_OK;
    if (storage_disk_each(root, STORAGE_ISCSI, look_at_sibling, &s, e) != ERR_OK || s.some)
        return e->code;
    return storage_iscsi_detach(d->iface, target, e);
}

/* ---- one disk ---- */

struct going {
    const char *root;
    const char *const *sources;
    size_t n_sources;
    unsigned patience_ms;
    struct err e; /* the first failure */
};

static bool was_of_pod(const struct going *g, const char *source)
{
    for (size_t i = 0; source != NULL && i < g->n_sources; i++)
        if (strcmp(g->sources[i], source) == 0)
            return true;
    return false;
}

static bool note_file(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

/* Of a disk that is mounted: a pod has it bound. Of a block device: its folder has a file of a pod. */
static enum err_code is_used(const struct going *g, const struct storage_disk *d, const char *source,
                             bool *ret, struct err *e)
{
    *ret = false;
    if (d->block && presence_is_unknown(fs_list(AT_FDCWD, d->path, note_file, ret, e)))
        return err_wrap(e, "list %s", d->path);
    return source != NULL ? is_source_used(g->root, source, ret, e) : ERR_OK;
}

/* The folder is the record of the disk, so it is removed last. */
static enum err_code end_disk(const struct going *g, const struct storage_disk *d, const char *source,
                              struct err *e)
{
    bool used = true;

    if (is_used(g, d, source, &used, e) != ERR_OK || used)
        return e->code;
    if (source != NULL && storage_unmount(d->path, g->patience_ms, e) != ERR_OK)
        return e->code;
    if (source != NULL && d->kind != STORAGE_LOCAL)
        storage_device_release(source, d->kind == STORAGE_FC);
    if (d->kind == STORAGE_ISCSI && log_out(g->root, d, e) != ERR_OK)
        return e->code;
    rmdir(d->path);
    storage_lock_remove(d->lock);
    return ERR_OK;
}

static enum err_code let_go(const struct going *g, const struct storage_disk *d, struct err *e)
{
    struct at at = { .path = d->path };
    fd_auto lock = -1;

    if (fs_each_mount(d->path, note_at, &at, e) == ERR_OK &&
        (was_of_pod(g, at.source) ? storage_lock(d->lock, &lock, e) : storage_try_lock(d->lock, &lock, e)) ==
            ERR_OK &&
        lock >= 0)
        ERR_IGNORE(end_disk(g, d, at.source, e));
    free(at.source);
    return e->code;
}

static bool look(const struct storage_disk *d, void *arg)
{
    struct going *g = arg;
    struct err e = { 0 };

    if (let_go(g, d, &e) != ERR_OK && g->e.code == ERR_OK)
        g->e = e;
    return true;
}

enum err_code storage_disks_let_go(const char *root, enum storage_kind kind, const char *const *sources,
                                   size_t n_sources, unsigned patience_ms, struct err *e)
{
    struct going g = { .root = root, .sources = sources, .n_sources = n_sources, .patience_ms = patience_ms };

    if (storage_disk_each(root, kind, look, &g, e) == ERR_OK && g.e.code != ERR_OK)
        *e = g.e;
    return e->code;
}
