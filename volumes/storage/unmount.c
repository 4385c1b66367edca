/* SPDX-License-Identifier: Apache-2.0 */
/* unmount - the end of a pod's volumes. A dead server answers no unmount: then the mount is given up, first
 * by force, so that what waits for the server fails, then lazily. Paths are not looked up beyond the mount
 * point, since that asks the server, too. */
#include "base/array.h"
#include "base/files/fs.h"
#include "base/process/process.h"
#include "volumes/storage/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORCE_MS 2000
#define DETACH_MS 5000

static const char *const plugins[] = {
    [STORAGE_NFS] = "nfs", [STORAGE_ISCSI] = "iscsi", [STORAGE_FC] = "fc", [STORAGE_LOCAL] = "local-volume"
};

struct points {
    struct point {
        char *path, *source;
    } * v;
    size_t n;
    bool no_memory;
    const char *of_source; /* only these; NULL: all */
};

static void points_done(struct points *p)
{
    while (p->n > 0) {
        free(p->v[--p->n].path);
        free(p->v[p->n].source);
    }
    free(p->v);
}

static bool note(const struct fs_mount *m, void *arg)
{
    struct points *p = arg;

    if (p->of_source != NULL && strcmp(m->source, p->of_source) != 0)
        return true;
    if (!array_room(p->v, p->n) || (p->v[p->n].path = strdup(m->point)) == NULL ||
        (p->v[p->n].source = strdup(m->source)) == NULL) {
        p->no_memory = true;
        return false;
    }
    p->n++;
    return true;
}

static enum err_code find(struct points *p, const char *prefix, struct err *e)
{
    if (fs_each_mount(prefix, note, p, e) != ERR_OK)
        return e->code;
    return p->no_memory ? err_nomem(e) : ERR_OK;
}

/* ---- one mount ---- */

/* 0, an errno, or ETIMEDOUT: a child that hangs is left to the kernel. */
static int try_unmount(const char *path, int flags, unsigned ms)
{
    pid_t pid = proc_call_fork();
    int status = 0;

    if (pid < 0)
        return errno;
    if (pid == 0)
        _exit(umount2(path, flags | UMOUNT_NOFOLLOW) == 0 ? 0 : errno < 255 ? errno : 255);
    for (unsigned waited = 0;; waited += 10) {
        pid_t found = waitpid(pid, &status, WNOHANG);

        if (found == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
        if (waited >= ms)
            break;
        poll(NULL, 0, 10);
    }
    kill(pid, SIGKILL);
    poll(NULL, 0, 50);
    (void)waitpid(pid, &status, WNOHANG);
    return ETIMEDOUT;
}

enum err_code storage_unmount(const char *path, unsigned patience_ms, struct err *e)
{
    int code = try_unmount(path, 0, patience_ms);

    if (code == ETIMEDOUT)
        (void)try_unmount(path, MNT_FORCE, FORCE_MS);
    if (code == ETIMEDOUT || code == EBUSY)
        code = try_unmount(path, MNT_DETACH, DETACH_MS);
    if (code == 0 || code == EINVAL || code == ENOENT) /* it is gone already */
        return ERR_OK;
    return code == ETIMEDOUT ? err_set(e, ERR_DEADLINE, "unmount %s: it does not finish", path)
                             : err_sys(e, code, "unmount %s", path);
}

/* Lower mounts come first in mountinfo. Goes on after a failure. */
static enum err_code unmount_all(const struct points *p, unsigned patience_ms, struct err *e)
{
    for (size_t i = p->n; i-- > 0;) {
        struct err one = { 0 };

        if (storage_unmount(p->v[i].path, patience_ms, &one) == ERR_OK)
            rmdir(p->v[i].path);
        else if (e->code == ERR_OK)
            *e = one;
    }
    return e->code;
}

/* ---- the pod ---- */

static void place(char ret[STORAGE_PATH_MAX], const char *root, const char *uid, size_t plugin)
{
    snprintf(ret, STORAGE_PATH_MAX, "%.700s/pods/%.64s/volumes/kubernetes.io~%s", root, uid, plugins[plugin]);
}

/* Sub paths of these volumes are mounts of the same source, and keep it busy. */
static enum err_code unmount_sub_paths(const char *root, const char *uid, const struct points *of,
                                       unsigned patience_ms, struct err *e)
{
    char prefix[STORAGE_PATH_MAX];

    snprintf(prefix, sizeof(prefix), "%.700s/pods/%.64s/volume-subpaths", root, uid);
    for (size_t i = 0; e->code == ERR_OK && i < of->n; i++) {
        struct points subs = { .of_source = of->v[i].source };

        if (find(&subs, prefix, e) == ERR_OK)
            ERR_IGNORE(unmount_all(&subs, patience_ms, e));
        points_done(&subs);
    }
    return e->code;
}

static bool remove_folder(const char *name, void *arg)
{
    char path[STORAGE_PATH_MAX + 300];

    snprintf(path, sizeof(path), "%s/%.255s", (const char *)arg, name);
    rmdir(path); /* one that is not empty is said by the removal of the pod's folders */
    return true;
}

static enum err_code let_disks_go(const char *root, enum storage_kind kind, const struct points *gone,
                                  unsigned patience_ms, struct err *e)
{
    const char **sources;

    if (kind == STORAGE_NFS)
        return ERR_OK;
    sources = calloc(gone->n + 1, sizeof(sources[0]));
    if (sources == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < gone->n; i++)
        sources[i] = gone->v[i].source;
    ERR_IGNORE(storage_disks_let_go(root, kind, sources, gone->n, patience_ms, e));
    free(sources);
    return e->code;
}

static bool has_devices(const char *root, const char *uid, enum storage_kind kind)
{
    return (kind == STORAGE_ISCSI || kind == STORAGE_FC) && storage_block_has_any(root, uid);
}

/* The pod's folders go last: while they are there, all of this is done again. */
static enum err_code unmount_plugin(const char *root, const char *uid, enum storage_kind kind,
                                    unsigned patience_ms, struct err *e)
{
    struct points targets = { 0 };
    char prefix[STORAGE_PATH_MAX];
    const bool devices = has_devices(root, uid, kind);

    place(prefix, root, uid, kind);
    if (access(prefix, F_OK) != 0 && !devices)
        return ERR_OK;
    if (find(&targets, prefix, e) == ERR_OK &&
        unmount_sub_paths(root, uid, &targets, patience_ms, e) == ERR_OK &&
        unmount_all(&targets, patience_ms, e) == ERR_OK &&
        (!devices || storage_block_unmap(root, uid, kind, patience_ms, e) == ERR_OK) &&
        let_disks_go(root, kind, &targets, patience_ms, e) == ERR_OK) {
        if (devices)
            storage_block_forget(root, uid, kind);
        if (presence_is_unknown(fs_list(AT_FDCWD, prefix, remove_folder, prefix, e)))
            err_wrap(e, "list %s", prefix);
        else
            rmdir(prefix);
    }
    points_done(&targets);
    return e->code;
}

enum err_code storage_unmount_all(const char *root, const char *uid, unsigned patience_ms, struct err *e)
{
    for (enum storage_kind kind = STORAGE_NFS; kind <= STORAGE_LOCAL; kind++) {
        struct err one = { 0 };

        if (unmount_plugin(root, uid, kind, patience_ms, &one) != ERR_OK && e->code == ERR_OK)
            *e = one;
    }
    return e->code;
}

static bool note_source(const struct fs_mount *m, void *arg)
{
    struct point *p = arg;

    if (strcmp(m->point, p->path) != 0 || p->source != NULL)
        return true;
    p->source = strdup(m->source);
    return false;
}

enum err_code storage_unmount_sub_paths(const char *root, const char *uid, const char *target,
                                        unsigned patience_ms, struct err *e)
{
    struct point at = { .path = (char *)(uintptr_t)target };
    const struct points of = { .v = &at, .n = 1 };

    if (fs_each_mount(target, note_source, &at, e) == ERR_OK && at.source != NULL)
        ERR_IGNORE(unmount_sub_paths(root, uid, &of, patience_ms, e));
    free(at.source);
    return e->code;
}

bool storage_has_any(const char *root, const char *uid)
{
    char path[STORAGE_PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
        place(path, root, uid, i);
        if (access(path, F_OK) == 0)
            return true;
    }
    return storage_block_has_any(root, uid);
}
