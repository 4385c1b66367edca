/* SPDX-License-Identifier: Apache-2.0 */
/* unmount - the FlexVolumes of a pod, as their folders below it say. */
#include "base/buf.h"
#include "base/files/fs.h"
#include "volumes/flex/internal.h"
#include "volumes/storage/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 1400

enum err_code flex_unmount(const struct flex_volume *v, struct flex_end how, struct err *e)
{
    struct flex_answer answer;
    bool supported = true;

    if (storage_unmount_sub_paths(v->root, v->pod_uid, v->target, how.patience_ms, e) != ERR_OK)
        return e->code;
    if (FLEX_ASK(v->program, &supported, &answer, e, "unmount", v->target) != ERR_OK)
        return e->code;
    if (!supported && storage_unmount(v->target, how.patience_ms, e) != ERR_OK)
        return e->code;
    if (rmdir(v->target) != 0 && errno != ENOENT && errno != ENOTEMPTY)
        return err_sys(e, errno, "remove %s", v->target);
    return ERR_OK;
}

/* "VENDOR~DRIVER", or "DRIVER"; what Kubernetes itself mounts is "kubernetes.io~nfs". */
static bool is_driver(const char *folder)
{
    return folder[0] != '.' && !str_starts(folder, "kubernetes.io~");
}

struct going {
    const struct flex_pod *pod;
    const char *folder; /* of the driver whose volumes are looked at */
    char program[PATH_SIZE];
    struct err e; /* the first failure */
};

static bool unmount_volume(const char *name, void *arg)
{
    struct going *g = arg;
    char target[PATH_SIZE];
    const struct flex_volume v = { .program = g->program,
                                   .dir_name = g->folder,
                                   .root = g->pod->root,
                                   .node = g->pod->node,
                                   .name = name,
                                   .target = target,
                                   .pod_uid = g->pod->uid };
    struct err e = { 0 };

    snprintf(target, sizeof(target), "%.500s/pods/%.64s/volumes/%.255s/%.255s", g->pod->root, g->pod->uid,
             g->folder, name);
    if (access(g->program, X_OK) != 0)
        err_set(&e, ERR_UNAVAILABLE, "volume \"%.253s\": its FlexVolume driver %.300s is missing", name,
                g->program);
    else if (flex_unmount(&v, g->pod->how, &e) != ERR_OK)
        err_wrap(&e, "volume \"%.253s\"", name);
    if (e.code != ERR_OK && g->e.code == ERR_OK)
        g->e = e;
    return true;
}

static void let_devices_go(struct going *g)
{
    const struct flex_volume driver = {
        .program = g->program, .dir_name = g->folder, .root = g->pod->root, .node = g->pod->node
    };
    struct err e = { 0 };

    if (access(g->program, X_OK) == 0 && flex_devices_let_go(&driver, g->pod->how, &e) != ERR_OK &&
        g->e.code == ERR_OK)
        g->e = e;
}

/* The pod's folder of the driver is removed last: while it exists, the removal is repeated. */
static bool unmount_driver(const char *folder, void *arg)
{
    struct going *g = arg;
    const char *tilde = strchr(folder, '~');
    char path[PATH_SIZE];
    struct err e = { 0 };

    if (!is_driver(folder))
        return true;
    g->folder = folder;
    snprintf(g->program, sizeof(g->program), "%.700s/%.255s/%.255s", g->pod->plugin_dir, folder,
             tilde != NULL ? tilde + 1 : folder);
    snprintf(path, sizeof(path), "%.500s/pods/%.64s/volumes/%.255s", g->pod->root, g->pod->uid, folder);
    if (presence_is_unknown(fs_list(AT_FDCWD, path, unmount_volume, g, &e)) && g->e.code == ERR_OK)
        g->e = e;
    let_devices_go(g);
    if (g->e.code == ERR_OK)
        rmdir(path);
    return true;
}

enum err_code flex_unmount_all(const struct flex_pod *p, struct err *e)
{
    struct going g = { .pod = p };
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%.500s/pods/%.64s/volumes", p->root, p->uid);
    if (presence_is_unknown(fs_list(AT_FDCWD, path, unmount_driver, &g, e)))
        return e->code;
    if (g.e.code != ERR_OK)
        *e = g.e;
    return e->code;
}

struct looking {
    void (*fn)(const char *driver, void *arg);
    void *arg;
    bool some;
};

static bool note_driver(const char *folder, void *arg)
{
    struct looking *l = arg;
    char name[256];
    char *tilde;

    if (!is_driver(folder))
        return true;
    l->some = true;
    snprintf(name, sizeof(name), "%.255s", folder);
    tilde = strchr(name, '~');
    if (tilde != NULL)
        *tilde = '/';
    if (l->fn != NULL)
        l->fn(name, l->arg);
    return true;
}

bool flex_has_any(const char *root, const char *uid, void (*fn)(const char *driver, void *arg), void *arg)
{
    struct looking l = { .fn = fn, .arg = arg };
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%.500s/pods/%.64s/volumes", root, uid);
    return presence_is_unknown(fs_list(AT_FDCWD, path, note_driver, &l, ERR_IGNORED)) || l.some;
}
