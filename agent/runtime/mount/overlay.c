/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/mount/overlay.h"

#include "agent/runtime/mount/idmap.h"
#include "base/buf.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int overlay_open_layer(const char *path, struct err *e)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        err_sys(e, errno, "open layer %s", path);
    return fd;
}

/* The root of the merged tree has the upper folder's owner: set it to that of the image's top layer, like
 * containerd. */
static enum err_code make_upper(const char *layer_dir, int top_layer, int *ret_upper, int *ret_work,
                                struct err *e)
{
    char path[600];
    struct stat st;

    snprintf(path, sizeof(path), "%s/work", layer_dir); /* first, so that its parent gets 0700, too */
    if (fs_mkdirs(path, 0700, e) != ERR_OK || (*ret_work = overlay_open_layer(path, e)) < 0)
        return e->code;
    snprintf(path, sizeof(path), "%s/upper", layer_dir);
    if (fs_mkdirs(path, 0755, e) != ERR_OK || (*ret_upper = overlay_open_layer(path, e)) < 0)
        return e->code;
    if (fstat(top_layer, &st) != 0 || fchownat(*ret_upper, "", st.st_uid, st.st_gid, AT_EMPTY_PATH) != 0)
        return err_sys(e, errno, "owner of %s", path);
    return ERR_OK;
}

/*
 * The options refer to descriptors in /proc/self/fd: mount(2) accepts at most a page of options, too few for
 * 127 layers with long names, and no path needs escaping.
 *
 * "volatile" (Linux 5.10): an upper folder is never mounted again, so the sync of the whole file system at
 * each unmount is unnecessary.
 */
static enum err_code mount_layers(const struct overlay *o, const int *layers, size_t n, const char *target,
                                  struct err *e)
{
    buf_auto options = BUF_INIT(4000); /* a page, less the kernel's part */
    unsigned long flags = o->writable_dir != NULL ? 0 : MS_RDONLY | MS_NOSUID | MS_NODEV;
    fd_auto upper = -1;
    fd_auto work = -1;
    int status;

    buf_adds(&options, "lowerdir=");
    for (size_t i = 0; i < n; i++)
        buf_addf(&options, "%s%d", i > 0 ? ":" : "", layers[i]);
    if (o->writable_dir != NULL) {
        if (make_upper(o->writable_dir, layers[0], &upper, &work, e) != ERR_OK)
            return e->code;
        buf_addf(&options, ",upperdir=%d,workdir=%d,volatile", upper, work);
    }
    if (chdir("/proc/self/fd") != 0)
        return err_sys(e, errno, "chdir /proc/self/fd");
    if (buf_check(&options, e) != ERR_OK)
        return e->code;
    status = mount(o->source, target, "overlay", flags, options.p);
    if (status != 0 && errno == EINVAL && o->writable_dir != NULL) {
        options.p[options.n - strlen(",volatile")] = '\0';
        status = mount(o->source, target, "overlay", flags, options.p);
    }
    if (status != 0)
        return err_sys(e, errno, "mount overlay with %zu layers", n);
    return ERR_OK;
}

/*
 * The layers mapped to the pod's users. overlayfs only accepts attached mounts as layers: so all are attached
 * on top of each other in a mount namespace of this process, where the merged tree is mounted, too, and then
 * moved out (nothing is visible outside before: they are private). Afterwards the layers no longer need to be
 * mounted.
 */
static enum err_code mount_mapped(const struct overlay *o, const int *layers, size_t n, const char *target,
                                  struct err *e)
{
    fd_auto outside = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    fd_auto merged = -1;

    if (outside < 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return err_sys(e, errno, "create a mount namespace");
    for (size_t i = 0; i < n; i++)
        if (move_mount(layers[i], "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
            return err_sys(e, errno, "attach a layer");
    if (mount_layers(o, layers, n, target, e) != ERR_OK)
        return e->code;
    merged = open_tree(AT_FDCWD, target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (merged < 0 || setns(outside, CLONE_NEWNS) != 0 ||
        move_mount(merged, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_sys(e, errno, "mount the tree on %s", target);
    return ERR_OK;
}

static int open_one(const struct overlay *o, const char *path, struct err *e)
{
    return o->userns_fd < 0 ? overlay_open_layer(path, e) : idmap_tree(path, o->userns_fd, MS_PRIVATE, e);
}

static enum err_code overlay_mount_all(const struct overlay *o, int *layers, size_t *n, const char *target,
                                       struct err *e)
{
    for (; *n < o->dirs->n; (*n)++) { /* the top one first */
        layers[*n] = open_one(o, o->dirs->v[o->dirs->n - 1 - *n], e);
        if (layers[*n] < 0)
            return e->code;
    }
    /* Without an upper folder at least two lower ones are needed: the empty mount point is the second. */
    if (o->writable_dir == NULL && *n == 1) {
        layers[*n] = open_one(o, target, e);
        if (layers[*n] < 0)
            return e->code;
        (*n)++;
    }
    return o->userns_fd < 0 ? mount_layers(o, layers, *n, target, e) : mount_mapped(o, layers, *n, target, e);
}

enum err_code overlay_mount(const struct overlay *o, const char *target, struct err *e)
{
    int layers[OVERLAY_LAYERS_MAX + 1];
    size_t n = 0;

    if (o->dirs->n == 0 || o->dirs->n > OVERLAY_LAYERS_MAX)
        return err_set(e, ERR_NOT_FOUND, "image with %zu layers, not 1 to %d", o->dirs->n,
                       OVERLAY_LAYERS_MAX);
    ERR_IGNORE(overlay_mount_all(o, layers, &n, target, e));
    while (n > 0)
        close(layers[--n]);
    return e->code;
}
