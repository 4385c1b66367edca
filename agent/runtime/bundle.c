/*
 * The bundle: folders, root file system, configuration; made and removed in a child of its own, since
 * mounting, unmounting and large trees take time and can hang.
 */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/idmap.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LAYERS_MAX = 500, /* the kernel's OVL_MAX_STACK */
};

/* ---- root file system ------------------------------------------------------------------------ */

static int open_layer(const char *path, struct err *e)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        err_sys(e, errno, "open layer %s", path);
    return fd;
}

/* The root of the merged tree shows the upper folder's owner: that of the image's top layer, as containerd
 * does. */
static enum err_code make_upper(const char *layer_dir, int top_layer, int *ret_upper, int *ret_work,
                                struct err *e)
{
    char path[600];
    struct stat st;

    snprintf(path, sizeof(path), "%s/work", layer_dir); /* first, so that what is above gets 0700, too */
    if (fs_mkdirs(path, 0700, e) != ERR_OK || (*ret_work = open_layer(path, e)) < 0)
        return e->code;
    snprintf(path, sizeof(path), "%s/upper", layer_dir);
    if (fs_mkdirs(path, 0755, e) != ERR_OK || (*ret_upper = open_layer(path, e)) < 0)
        return e->code;
    if (fstat(top_layer, &st) != 0 || fchownat(*ret_upper, "", st.st_uid, st.st_gid, AT_EMPTY_PATH) != 0)
        return err_sys(e, errno, "owner of %s", path);
    return ERR_OK;
}

/*
 * The options name descriptors, seen from /proc/self/fd: mount(2) takes no more than a page of options, which
 * 127 layers with their long names would exceed, and no path needs escaping.
 *
 * "volatile" (Linux 5.10): an upper folder is never mounted a second time, so nothing is gained from the sync
 * of the whole file system below it that each unmount would else bring.
 */
static enum err_code mount_overlay(const int *layers, size_t n, const char *layer_dir, const char *target,
                                   struct err *e)
{
    buf_auto options = BUF_INIT(4000); /* a page, less the kernel's share */
    int upper = -1, work = -1;
    int status;

    buf_adds(&options, "lowerdir=");
    for (size_t i = 0; i < n; i++)
        buf_addf(&options, "%s%d", i > 0 ? ":" : "", layers[i]);
    if (make_upper(layer_dir, layers[0], &upper, &work, e) != ERR_OK)
        return e->code;
    buf_addf(&options, ",upperdir=%d,workdir=%d", upper, work);
    if (chdir("/proc/self/fd") != 0)
        return err_sys(e, errno, "chdir /proc/self/fd");
    buf_adds(&options, ",volatile");
    if (buf_check(&options, e) != ERR_OK)
        return e->code;
    status = mount("overlay", target, "overlay", 0, options.p);
    if (status != 0 && errno == EINVAL) {
        options.p[options.n - strlen(",volatile")] = '\0';
        status = mount("overlay", target, "overlay", 0, options.p);
    }
    if (status != 0)
        return err_sys(e, errno, "mount overlay with %zu layers", n);
    return ERR_OK;
}

/*
 * The layers as the pod's users have them.  overlayfs takes a layer only from a mount that is attached: they
 * all are, one over the other, in a mount namespace of this process, where the merged tree is mounted, too;
 * that is then moved out (and nothing of it shows outside before: they are private).  What it consists of
 * needs no mount of its own any more.
 */
static enum err_code mount_mapped(const int *layers, size_t n, const char *layer_dir, const char *target,
                                  struct err *e)
{
    fd_auto outside = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    fd_auto merged = -1;

    if (outside < 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return err_sys(e, errno, "make a mount namespace");
    for (size_t i = 0; i < n; i++)
        if (move_mount(layers[i], "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
            return err_sys(e, errno, "attach a layer");
    if (mount_overlay(layers, n, layer_dir, target, e) != ERR_OK)
        return e->code;
    merged = open_tree(AT_FDCWD, target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (merged < 0 || setns(outside, CLONE_NEWNS) != 0 ||
        move_mount(merged, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_sys(e, errno, "mount the root file system on %s", target);
    return ERR_OK;
}

static enum err_code mount_root(const struct rt_config *c, const char *layer_dir, const char *target,
                                int userns_fd, struct err *e)
{
    const struct img_strs *dirs = &c->image->layer_dirs;
    int layers[LAYERS_MAX];

    for (size_t i = 0; i < dirs->n; i++) { /* the top one first */
        const char *path = dirs->v[dirs->n - 1 - i];

        layers[i] = userns_fd < 0 ? open_layer(path, e) : idmap_tree(path, userns_fd, MS_PRIVATE, e);
        if (layers[i] < 0)
            return e->code;
    }
    return userns_fd < 0 ? mount_overlay(layers, dirs->n, layer_dir, target, e)
                         : mount_mapped(layers, dirs->n, layer_dir, target, e);
}

/* ---- files ----------------------------------------------------------------------------------- */

static enum err_code write_json(const struct rt_path *path, const json_t *v, struct err *e)
{
    str_auto text = json_text(v);

    if (text == NULL)
        return err_nomem(e);
    return fs_replace_at(AT_FDCWD, path->s, text, strlen(text), 0600, false, e);
}

static enum err_code write_meta(const struct rt *rt, const struct rt_config *c, struct err *e)
{
    struct rt_path path = rt_container_file(rt, c->id, "meta.json");
    json_auto_t *meta =
        json_pack("{s:s,s:s,s:s,s:s,s:I,s:s,s:s}", "podUID", c->pod_uid, "podNamespace", c->pod_namespace,
                  "podName", c->pod_name, "containerName", c->container_name, "attempt",
                  (json_int_t)c->attempt, "cgroupPath", c->cgroup_path, "imageID", c->image->id);

    if (meta == NULL)
        return err_nomem(e);
    return write_json(&path, meta, e);
}

static enum err_code write_config(const struct rt *rt, const struct rt_config *c, const char *rootfs,
                                  struct err *e)
{
    struct rt_path path = rt_container_file(rt, c->id, "config.json");
    json_auto_t *spec = NULL;
    fd_auto rootfs_fd = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (rootfs_fd < 0)
        return err_sys(e, errno, "open %s", rootfs);
    if (rt_spec_build(rt, c, rootfs_fd, &spec, e) != ERR_OK)
        return e->code;
    return write_json(&path, spec, e);
}

/* In a user namespace: all that the container sees is mapped to its users, and only they may pass the bundle.
 */
static enum err_code make_mapped(const struct rt *rt, const struct rt_config *c, const struct rt_path *dir,
                                 const char *layer_dir, const char *rootfs, struct err *e)
{
    struct rt_path mounts = rt_container_file(rt, c->id, RT_MAPPED_MOUNTS);
    fd_auto userns = idmap_open(c, e);
    bool each = strcmp(rt->features.runtime_name, "crun") == 0;
    struct arena arena = { 0 };
    struct rt_config mapped;

    if (userns >= 0 && mount_root(c, layer_dir, rootfs, userns, e) == ERR_OK &&
        idmap_mounts(c, userns, mounts.s, each, &arena, &mapped, e) == ERR_OK)
        (void)(write_config(rt, &mapped, rootfs, e) == ERR_OK);
    arena_done(&arena);
    if (e->code != ERR_OK)
        return e->code;
    if (chown(dir->s, 0, c->first_id) != 0 || chmod(dir->s, 0710) != 0)
        return err_sys(e, errno, "open bundle %s to the pod's users", dir->s);
    return ERR_OK;
}

static enum err_code make(const struct rt *rt, const struct rt_config *c, struct err *e)
{
    struct rt_path dir = rt_container_dir(rt, c->id), layer = rt_layer_dir(rt, c->id);
    struct rt_path rootfs = rt_container_file(rt, c->id, "rootfs");
    struct rt_path supervised = rt_container_file(rt, c->id, RT_SUPERVISED);

    /* The cheapest questions first: a pod whose configuration is wrong is asked about again and again. */
    if (rt_user_check_non_root(c, e) != ERR_OK)
        return e->code;
    if (c->image->layer_dirs.n == 0 || c->image->layer_dirs.n > LAYERS_MAX)
        return err_set(e, ERR_NOT_FOUND, "image %s has %zu layers, not 1 to %d", c->image->id,
                       c->image->layer_dirs.n, LAYERS_MAX);
    if (mkdir(dir.s, 0700) != 0)
        return err_sys(e, errno, "make bundle %s", dir.s);
    if (write_meta(rt, c, e) != ERR_OK || fs_mkdirs(rootfs.s, 0700, e) != ERR_OK)
        return e->code;
    if (c->userns != NULL
            ? make_mapped(rt, c, &dir, layer.s, rootfs.s, e) != ERR_OK
            : mount_root(c, layer.s, rootfs.s, -1, e) != ERR_OK || write_config(rt, c, rootfs.s, e) != ERR_OK)
        return e->code;
    return fs_replace_at(AT_FDCWD, supervised.s, "", 0, 0600, false, e);
}

enum err_code rt_bundle_make(const void *arg, struct buf *out, struct err *e)
{
    const struct rt_bundle_job *job = arg;
    struct err outcome = { 0 };

    (void)make(job->rt, job->config, &outcome);
    buf_add(out, &outcome, sizeof(outcome));
    return buf_check(out, e);
}

/* ---- removal --------------------------------------------------------------------------------- */

/* A runtime that was killed while it started may have left a mount of its own binary (crun in the bundle,
 * runc in its state). */
static enum err_code remove_with_mounts(const char *path, struct err *e)
{
    if (fs_remove_tree(AT_FDCWD, path, e) != ERR_PRECONDITION)
        return e->code;
    *e = (struct err){ 0 };
    if (fs_unmount_below(path, e) == ERR_OK)
        (void)(fs_remove_tree(AT_FDCWD, path, e) == ERR_OK);
    return e->code;
}

/* The bundle last: as long as it stands, so does the record of what the container was. */
enum err_code rt_bundle_remove(const void *arg, struct buf *out, struct err *e)
{
    const struct rt_bundle_removal *r = arg;

    (void)out;
    /* The one mount that belongs there; only when that fails for another reason than that it is gone, all are
     * looked for. */
    if (access(r->mapped.s, F_OK) == 0 && fs_unmount_below(r->mapped.s, e) != ERR_OK)
        return e->code;
    if (umount2(r->rootfs.s, MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL && errno != ENOENT &&
        fs_unmount_below(r->bundle.s, e) != ERR_OK)
        return e->code;
    if (fs_remove_tree(AT_FDCWD, r->layer.s, e) != ERR_OK || remove_with_mounts(r->oci.s, e) != ERR_OK)
        return e->code;
    fs_remove_quietly(AT_FDCWD, r->exit_file.s);
    return remove_with_mounts(r->bundle.s, e);
}
