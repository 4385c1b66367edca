/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device - what is mounted once for all pods of a volume whose driver attaches, and who uses it.
 *
 *     <root>/plugins/kubernetes.io/flexvolume/VENDOR/DRIVER/mounts/NAME    the device
 *     <root>/plugins/kubernetes.io/flexvolume/VENDOR/DRIVER/.NAME.lock     held while it comes or goes
 *     <root>/pods/UID/volumes/VENDOR~DRIVER/NAME                           a user, while the folder is there
 *
 * The folder of the device is made before it is attached and removed after it was detached: after a kill at
 * any point the next end of a pod finds it.
 */
#include "base/buf.h"
#include "base/files/fs.h"
#include "volumes/flex/internal.h"
#include "volumes/storage/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void driver_place(const char *root, const char *dir_name, char ret[FLEX_PATH_SIZE])
{
    const char *tilde = strchr(dir_name, '~');

    if (tilde != NULL)
        snprintf(ret, FLEX_PATH_SIZE, "%.500s/plugins/kubernetes.io/flexvolume/%.*s/%.200s", root,
                 (int)(tilde - dir_name), dir_name, tilde + 1);
    else
        snprintf(ret, FLEX_PATH_SIZE, "%.500s/plugins/kubernetes.io/flexvolume/%.200s", root, dir_name);
}

void flex_device_place(const struct flex_volume *v, char ret[FLEX_PATH_SIZE])
{
    size_t n;

    driver_place(v->root, v->dir_name, ret);
    n = strlen(ret);
    snprintf(ret + n, FLEX_PATH_SIZE - n, "/mounts/%.253s", v->name);
}

enum err_code flex_device_lock(const struct flex_volume *v, bool waits, int *ret_fd, struct err *e)
{
    char path[FLEX_PATH_SIZE];
    size_t n;

    driver_place(v->root, v->dir_name, path);
    n = strlen(path);
    if (storage_make_folder(path, e) != ERR_OK)
        return e->code;
    snprintf(path + n, sizeof(path) - n, "/%.253s", v->name);
    return waits ? storage_lock(path, ret_fd, e) : storage_try_lock(path, ret_fd, e);
}

static void lock_remove(const struct flex_volume *v)
{
    char path[FLEX_PATH_SIZE];
    size_t n;

    driver_place(v->root, v->dir_name, path);
    n = strlen(path);
    snprintf(path + n, sizeof(path) - n, "/%.253s", v->name);
    storage_lock_remove(path);
}

/* ---- users ---- */

struct users {
    const struct flex_volume *v;
    bool some;
};

static bool look_at_pod(const char *uid, void *arg)
{
    struct users *u = arg;
    char path[FLEX_PATH_SIZE];

    snprintf(path, sizeof(path), "%.500s/pods/%.64s/volumes/%.250s/%.253s", u->v->root, uid, u->v->dir_name,
             u->v->name);
    u->some = !presence_is_absent(fs_look_at(AT_FDCWD, path, NULL, ERR_IGNORED));
    return !u->some;
}

static enum err_code is_used(const struct flex_volume *v, bool *ret, struct err *e)
{
    struct users u = { .v = v };
    char pods[600];

    snprintf(pods, sizeof(pods), "%.500s/pods", v->root);
    if (presence_is_unknown(fs_list(AT_FDCWD, pods, look_at_pod, &u, e)))
        return err_wrap(e, "list %s", pods);
    *ret = u.some;
    return ERR_OK;
}

/* ---- the end ---- */

enum err_code flex_device_detach(const struct flex_volume *v, struct err *e)
{
    struct flex_answer answer;
    bool supported;

    return FLEX_ASK(v->program, &supported, &answer, e, "detach", v->name, v->node);
}

static enum err_code let_go(const struct flex_volume *v, struct flex_end how, struct err *e)
{
    char place[FLEX_PATH_SIZE];
    struct flex_answer answer;
    bool supported = true, used = true;
    fd_auto lock = -1;

    flex_device_place(v, place);
    if (flex_device_lock(v, false, &lock, e) != ERR_OK || lock < 0)
        return e->code; /* somebody is about to use it */
    if (is_used(v, &used, e) != ERR_OK || used)
        return e->code;
    if (FLEX_ASK(v->program, &supported, &answer, e, "unmountdevice", place) != ERR_OK ||
        (!supported && storage_unmount(place, how.patience_ms, e) != ERR_OK) ||
        (how.detaches && flex_device_detach(v, e) != ERR_OK))
        return e->code;
    rmdir(place);
    lock_remove(v);
    return ERR_OK;
}

struct going {
    struct flex_volume v; /* of the driver; the name of each */
    struct flex_end how;
    struct err e; /* the first failure */
};

static bool let_one_go(const char *name, void *arg)
{
    struct going *g = arg;
    struct err e = { 0 };

    g->v.name = name;
    if (name[0] != '.' && let_go(&g->v, g->how, &e) != ERR_OK && g->e.code == ERR_OK) {
        err_wrap(&e, "volume \"%.253s\"", name);
        g->e = e;
    }
    return true;
}

enum err_code flex_devices_let_go(const struct flex_volume *driver, struct flex_end how, struct err *e)
{
    struct going g = { .v = *driver, .how = how };
    char path[FLEX_PATH_SIZE];
    size_t n;

    driver_place(driver->root, driver->dir_name, path);
    n = strlen(path);
    snprintf(path + n, sizeof(path) - n, "/mounts");
    if (presence_is_unknown(fs_list(AT_FDCWD, path, let_one_go, &g, e)))
        return err_wrap(e, "list %s", path);
    if (g.e.code != ERR_OK)
        *e = g.e;
    return e->code;
}

/* ---- all of the node ---- */

bool flex_attach_name(const char *driver, const char *name, char *ret, size_t size)
{
    int n = snprintf(ret, size, "%s/%s", driver, name);

    return n > 0 && (size_t)n < size;
}

struct walk {
    void (*fn)(const char *attach_name, void *arg);
    void *arg;
    char path[FLEX_PATH_SIZE], name[600]; /* the folder; "VENDOR/DRIVER" */
};

/* What cannot be read is not told. */
static void list(const char *path, bool (*fn)(const char *name, void *arg), struct walk *w)
{
    if (presence_is_unknown(fs_list(AT_FDCWD, path, fn, w, ERR_IGNORED)))
        return;
}

static bool tell_device(const char *name, void *arg)
{
    const struct walk *w = arg;
    char whole[900];

    if (name[0] != '.' && flex_attach_name(w->name, name, whole, sizeof(whole)))
        w->fn(whole, w->arg);
    return true;
}

static bool look_at_driver(const char *name, void *arg)
{
    struct walk *w = arg;
    size_t n = strlen(w->path), k = strlen(w->name);

    if (strcmp(name, "mounts") == 0) { /* of a driver without a vendor */
        snprintf(w->path + n, sizeof(w->path) - n, "/mounts");
    } else {
        snprintf(w->path + n, sizeof(w->path) - n, "/%.250s/mounts", name);
        snprintf(w->name + k, sizeof(w->name) - k, "/%.250s", name);
    }
    if (name[0] != '.')
        list(w->path, tell_device, w);
    w->path[n] = w->name[k] = '\0';
    return true;
}

static bool look_at_vendor(const char *name, void *arg)
{
    struct walk *w = arg;
    size_t n = strlen(w->path);

    snprintf(w->path + n, sizeof(w->path) - n, "/%.250s", name);
    snprintf(w->name, sizeof(w->name), "%.250s", name);
    list(w->path, look_at_driver, w);
    w->path[n] = '\0';
    return true;
}

void flex_each_device(const char *root, void (*fn)(const char *attach_name, void *arg), void *arg)
{
    struct walk w = { .fn = fn, .arg = arg };

    snprintf(w.path, sizeof(w.path), "%.500s/plugins/kubernetes.io/flexvolume", root);
    list(w.path, look_at_vendor, &w);
}
