/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle: folders, root file system, configuration. It is created in a thread, because that only uses our
 * own files, or in a child if volumes are mapped to a pod's users; it is removed in a child, because large
 * trees take time. */
#include "agent/api/manifest/decode.h"
#include "agent/runtime/container_internal.h"
#include "agent/runtime/mount/device_nodes.h"
#include "agent/runtime/mount/idmap.h"
#include "agent/runtime/mount/overlay.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- root file system ---- */

static enum err_code mount_root(const struct rt_config *c, const char *layer_dir, const char *target,
                                int userns_fd, struct err *e)
{
    const struct overlay o = {
        .dirs = &c->image->layer_dirs, .writable_dir = layer_dir, .source = "overlay", .userns_fd = userns_fd
    };

    return overlay_mount(&o, target, e);
}

/* ---- files ---- */

static enum err_code write_json(const struct rt_path *path, const json_t *v, struct err *e)
{
    str_auto text = json_text(v);
    enum err_code code;

    if (text == NULL)
        return err_nomem(e);
    code = fs_replace_at(AT_FDCWD, path->s, text, strlen(text), 0600, false, e);
    explicit_bzero(text, strlen(text)); /* the environment may contain secrets */
    return code;
}

static enum err_code write_meta(const struct rt *rt, const struct rt_handler *h, const struct rt_config *c,
                                struct err *e)
{
    struct rt_path path = rt_container_file(rt, c->id, "meta.json");
    json_auto_t *meta = json_pack("{s:s,s:s,s:s,s:s,s:I,s:s,s:s,s:o}", "podUID", c->pod_uid, "podNamespace",
                                  c->pod_namespace, "podName", c->pod_name, "containerName",
                                  c->container_name, "attempt", (json_int_t)c->attempt, "cgroupPath",
                                  c->cgroup_path, "imageID", c->image->id, "runtime", rt_handler_record(h));

    if (meta == NULL)
        return err_nomem(e);
    return write_json(&path, meta, e);
}

static enum err_code write_config(const struct rt *rt, const struct rt_handler *h, const struct rt_config *c,
                                  const char *rootfs, struct err *e)
{
    struct rt_path path = rt_container_file(rt, c->id, "config.json");
    struct rt_host host = rt->host; /* its strings are borrowed */
    json_auto_t *spec = NULL;
    struct arena arena = { 0 };
    struct rt_config whole;
    enum err_code code;
    fd_auto rootfs_fd = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (rootfs_fd < 0)
        return err_sys(e, errno, "open %s", rootfs);
    host.features = h->features;
    if (rt_volumes_add(c, rootfs_fd, &arena, &whole, e) == ERR_OK)
        ERR_IGNORE(rt_spec_build(&host, &whole, rootfs_fd, &spec, e));
    arena_done(&arena);
    if (e->code != ERR_OK)
        return e->code;
    code = write_json(&path, spec, e);
    api_json_wipe(json_object_get(spec, "process")); /* contains the environment */
    return code;
}

/* With a user namespace, everything in the container is mapped to its users, and only they may enter the
 * bundle. */
static enum err_code make_mapped(const struct rt *rt, const struct rt_handler *h, const struct rt_config *c,
                                 const struct rt_path *dir, const char *layer_dir, const char *rootfs,
                                 struct err *e)
{
    struct rt_path mounts = rt_container_file(rt, c->id, RT_MAPPED_MOUNTS);
    fd_auto userns = idmap_open(c->userns, e);
    bool each = strcmp(h->features.runtime_name, "crun") == 0;
    struct arena arena = { 0 };
    struct rt_config mapped, whole;

    if (userns >= 0 && mount_root(c, layer_dir, rootfs, userns, e) == ERR_OK &&
        idmap_mounts(c, userns, mounts.s, each, &arena, &mapped, e) == ERR_OK) {
        fd_auto rootfs_fd = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (rootfs_fd < 0)
            err_sys(e, errno, "open %s", rootfs);
        else if (device_nodes_make(&mapped, rootfs_fd, mounts.s, &arena, &whole, e) == ERR_OK)
            ERR_IGNORE(write_config(rt, h, &whole, rootfs, e));
    }
    arena_done(&arena);
    if (e->code != ERR_OK)
        return e->code;
    if (chown(dir->s, 0, c->first_id) != 0 || chmod(dir->s, 0710) != 0)
        return err_sys(e, errno, "open bundle %s to the pod's users", dir->s);
    return ERR_OK;
}

/* Handles a mount whose source is missing as containerd does, with its CRI plugin's text. */
static enum err_code make_sources(const struct rt_config *c, struct err *e)
{
    for (size_t i = 0; i < c->n_mounts; i++) {
        const struct rt_mount *m = &c->mounts[i];
        struct stat st;

        if (!m->make_source || stat(m->source, &st) == 0)
            continue;
        if (errno != ENOENT)
            return err_sys(e, errno, "failed to stat \"%s\"", m->source);
        if (fs_mkdirs(m->source, 0755, e) != ERR_OK)
            return err_wrap(e, "failed to mkdir \"%s\"", m->source);
    }
    return ERR_OK;
}

static enum err_code bundle_fill(const struct rt *rt, const struct rt_handler *h, const struct rt_config *c,
                                 const struct rt_path *dir, struct err *e)
{
    struct rt_path rootfs = rt_container_file(rt, c->id, "rootfs"), layer = rt_layer_dir(rt, c->id);
    struct arena arena = { 0 };
    struct rt_config edited;

    enum err_code code = rt_edits_add_mounts(c, &arena, &edited, e);

    if (code == ERR_OK)
        code = make_sources(&edited, e);
    if (code == ERR_OK && c->userns != NULL)
        code = make_mapped(rt, h, &edited, dir, layer.s, rootfs.s, e);
    else if (code == ERR_OK && mount_root(&edited, layer.s, rootfs.s, -1, e) == ERR_OK)
        code = write_config(rt, h, &edited, rootfs.s, e);
    arena_done(&arena);
    return e->code;
}

static enum err_code bundle_make(const struct rt *rt, const struct rt_handler *h, const struct rt_config *c,
                                 struct err *e)
{
    struct rt_path dir = rt_container_dir(rt, c->id);
    struct rt_path rootfs = rt_container_file(rt, c->id, "rootfs");
    struct rt_path supervised = rt_container_file(rt, c->id, RT_SUPERVISED);

    /* Cheapest checks first: a pod with an invalid configuration is retried forever. */
    if (rt_user_check_non_root(c, e) != ERR_OK)
        return e->code;
    if (c->image->layer_dirs.n == 0 || c->image->layer_dirs.n > OVERLAY_LAYERS_MAX)
        return err_set(e, ERR_NOT_FOUND, "image %s has %zu layers, not 1 to %d", c->image->id,
                       c->image->layer_dirs.n, OVERLAY_LAYERS_MAX);
    if (mkdir(dir.s, 0700) != 0)
        return err_sys(e, errno, "create bundle %s", dir.s);
    if (write_meta(rt, h, c, e) != ERR_OK || fs_mkdirs(rootfs.s, 0700, e) != ERR_OK)
        return e->code;
    if (bundle_fill(rt, h, c, &dir, e) != ERR_OK)
        return e->code;
    return fs_replace_at(AT_FDCWD, supervised.s, "", 0, 0600, false, e);
}

enum err_code rt_bundle_make(const void *arg, struct buf *out, struct err *e)
{
    const struct rt_bundle_job *job = arg;
    struct err outcome = { 0 };

    (void)bundle_make(job->rt, job->handler, job->config, &outcome);
    buf_add(out, &outcome, sizeof(outcome));
    return buf_check(out, e);
}

/* ---- removal ---- */

/* A runtime killed during its start may have left a mount of its own binary (crun in the bundle, runc in its
 * state). */
static enum err_code remove_with_mounts(const char *path, struct err *e)
{
    if (fs_remove_tree(AT_FDCWD, path, e) != ERR_PRECONDITION)
        return e->code;
    *e = (struct err){ 0 };
    if (fs_unmount_below(path, e) == ERR_OK)
        ERR_IGNORE(fs_remove_tree(AT_FDCWD, path, e));
    return e->code;
}

/* The bundle is removed last, because it identifies the container. */
enum err_code rt_bundle_remove(const void *arg, struct buf *out, struct err *e)
{
    const struct rt_bundle_removal *r = arg;
    struct presence mapped = fs_look_at(AT_FDCWD, r->mapped.s, NULL, e);

    (void)out;
    if (presence_is_unknown(mapped))
        return e->code;
    /* Usually there is just this mount; all are searched only if unmounting it fails for another reason than
     * absence. */
    if (!presence_is_absent(mapped) && fs_unmount_below(r->mapped.s, e) != ERR_OK)
        return e->code;
    if (umount2(r->rootfs.s, MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL && errno != ENOENT &&
        fs_unmount_below(r->bundle.s, e) != ERR_OK)
        return e->code;
    if (fs_remove_tree(AT_FDCWD, r->layer.s, e) != ERR_OK || remove_with_mounts(r->oci.s, e) != ERR_OK)
        return e->code;
    if (unlink(r->exit_file.s) != 0 && errno != ENOENT)
        return err_sys(e, errno, "remove %s", r->exit_file.s);
    return remove_with_mounts(r->bundle.s, e);
}
