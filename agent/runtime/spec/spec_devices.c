/* SPDX-License-Identifier: Apache-2.0 */
/* Device nodes of a container: those of plugins and of CDI and, if privileged, all of the host. */
#include "agent/runtime/spec/internal.h"

#include "base/array.h"
#include "base/files/fs.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
    DEVICES_MAX = 4096, /* a host with hundreds of disks has about a thousand */
    DEPTH_MAX = 8,
};

struct walk {
    struct rt_nodes *nodes;
    const char *access; /* NULL: no rule per device */
    bool alone;         /* nothing was added before, so no path can repeat */
};

void rt_nodes_done(struct rt_nodes *nodes)
{
    free(nodes->v);
    arena_done(&nodes->arena);
    *nodes = (struct rt_nodes){ 0 };
}

/* Replaces an earlier node with the same path, because a runtime may refuse to create a node twice. */
static enum err_code add_node(struct rt_nodes *nodes, const struct rt_node *node, bool alone, struct err *e)
{
    if (!utf8_is_valid(node->path, strlen(node->path)))
        return err_set(e, ERR_DATA_LOSS, "device \"%s\": its path in the container is not UTF-8", node->path);
    for (size_t i = 0; !alone && i < nodes->n; i++)
        if (strcmp(nodes->v[i].path, node->path) == 0) {
            nodes->v[i] = *node;
            return ERR_OK;
        }
    if (nodes->n >= DEVICES_MAX)
        return err_set(e, ERR_EXHAUSTED, "more than %d devices", DEVICES_MAX);
    if (!array_room(nodes->v, nodes->n))
        return err_nomem(e);
    nodes->v[nodes->n++] = *node;
    return ERR_OK;
}

static enum err_code spec_devices_add_node(const struct walk *w, const struct stat *st, const char *target,
                                           struct err *e)
{
    const struct rt_node node = { .path = arena_strdup(&w->nodes->arena, target),
                                  .type = S_ISCHR(st->st_mode) ? 'c' : 'b',
                                  .major = major(st->st_rdev),
                                  .minor = minor(st->st_rdev),
                                  .access = w->access,
                                  .of_host = w->access == NULL,
                                  .has_mode = true,
                                  .has_uid = true,
                                  .has_gid = true,
                                  .mode = st->st_mode & 07777,
                                  .uid = st->st_uid,
                                  .gid = st->st_gid };

    return node.path != NULL ? add_node(w->nodes, &node, w->alone, e) : err_nomem(e);
}

/* ---- folders ---- */

/* containerd omits these for a privileged container: they are its own mounts, or not the host's devices. */
static bool spec_devices_is_skipped(const char *name)
{
    static const char *const names[] = { ".",      "..",   "pts",         "shm",   "fd",
                                         "mqueue", ".lxc", ".lxd-mounts", ".udev", "console" };
    size_t i;

    for (i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Every node below a folder; skips links, sockets and vanished ones. */
static enum err_code add_tree(const struct walk *w, const char *dir, const char *target, int level,
                              struct err *e)
{
    DIR *stream = opendir(dir);
    const struct dirent *entry;
    enum err_code code = ERR_OK;

    if (stream == NULL)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "open %s", dir);
    while (code == ERR_OK && (errno = 0, entry = readdir(stream)) != NULL) {
        char from[PATH_MAX], to[PATH_MAX];
        struct presence found = presence_absent();
        struct stat st;

        if (!spec_devices_is_skipped(entry->d_name))
            found = fs_look_at(dirfd(stream), entry->d_name, &st, e);
        if (presence_is_unknown(found))
            code = err_wrap(e, "devices in %s", dir);
        if (presence_is_unknown(found) || presence_is_absent(found) ||
            snprintf(from, sizeof(from), "%s/%s", dir, entry->d_name) >= (int)sizeof(from) ||
            snprintf(to, sizeof(to), "%s/%s", target, entry->d_name) >= (int)sizeof(to))
            continue;
        if (S_ISDIR(st.st_mode) && level < DEPTH_MAX)
            code = add_tree(w, from, to, level + 1, e);
        else if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
            code = spec_devices_add_node(w, &st, to, e);
    }
    if (code == ERR_OK && errno != 0)
        code = err_sys(e, errno, "list %s", dir);
    closedir(stream);
    return code;
}

/* ---- devices of plugins ---- */

static bool are_permissions(const char *text)
{
    return *text != '\0' && strspn(text, "rwm") == strlen(text);
}

static enum err_code check_target(const char *path, struct err *e)
{
    return *path == '/'
               ? ERR_OK
               : err_set(e, ERR_NOT_FOUND, "device \"%s\": its path in the container is not absolute", path);
}

static enum err_code add_device(const struct rt_device *device, struct rt_nodes *nodes, struct err *e)
{
    const struct walk w = { .nodes = nodes, .access = device->permissions };
    const char *target = *device->container_path != '\0' ? device->container_path : device->host_path;
    struct stat st;

    if (!are_permissions(device->permissions))
        return err_set(e, ERR_NOT_FOUND, "device %s: permissions \"%s\" are not of r, w and m",
                       device->host_path, device->permissions);
    if (check_target(target, e) != ERR_OK)
        return e->code;
    if (stat(device->host_path, &st) != 0) {
        if (errno != ENOENT)
            return err_sys(e, errno, "device %s", device->host_path);
        /* containerd's text */
        return err_set(e, ERR_NOT_FOUND, "device %s: lstat %s: no such file or directory", target,
                       device->host_path);
    }
    if (S_ISDIR(st.st_mode))
        return add_tree(&w, device->host_path, target, 0, e);
    if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
        return err_set(e, ERR_NOT_FOUND, "device %s: not a device node", device->host_path);
    return spec_devices_add_node(&w, &st, target, e);
}

/* ---- devices of CDI ---- */

static char type_of(mode_t mode)
{
    return S_ISCHR(mode) ? 'c' : S_ISBLK(mode) ? 'b' : S_ISFIFO(mode) ? 'p' : '\0';
}

/* Values that the edit does not set are copied from the host. A node with a complete description needs no
 * node on the host. */
static enum err_code fill_from_host(const struct rt_edit_node *edit, struct rt_node *node, struct err *e)
{
    const char *host = edit->host_path != NULL ? edit->host_path : edit->path;
    bool complete = edit->type != '\0' && (edit->major != 0 || edit->type == 'p');
    char type = edit->type == 'u' ? 'c' : edit->type;
    struct stat st;
    int failed = stat(host, &st) != 0 ? errno : 0;

    if (complete && (failed != 0 || type_of(st.st_mode) == '\0'))
        return ERR_OK;
    if (failed == ENOENT) /* the CDI library's text */
        return err_set(e, ERR_NOT_FOUND, "failed to stat CDI host device \"%s\": no such file or directory",
                       host);
    if (failed != 0)
        return err_sys(e, failed, "failed to stat CDI host device \"%s\"", host);
    if (type_of(st.st_mode) == '\0')
        return err_set(e, ERR_NOT_FOUND, "failed to stat CDI host device \"%s\": not a device node", host);
    if (!edit->has_file_mode) {
        node->has_mode = true;
        node->mode = st.st_mode & 07777;
    }
    if (complete)
        return ERR_OK;
    if (type != '\0' && type != type_of(st.st_mode))
        return err_set(e, ERR_NOT_FOUND, "CDI device (\"%s\", \"%s\"), host type mismatch (%c, %c)",
                       edit->path, host, edit->type, type_of(st.st_mode));
    node->type = type_of(st.st_mode);
    if (node->type != 'p' && edit->major == 0) {
        node->major = major(st.st_rdev);
        node->minor = minor(st.st_rdev);
    }
    return ERR_OK;
}

static enum err_code add_edit_node(const struct rt_edit_node *edit, const struct rt_user *user,
                                   struct rt_nodes *nodes, struct err *e)
{
    struct rt_node node = { .path = edit->path,
                            .type = edit->type == 'u' ? 'c' : edit->type,
                            .major = edit->major,
                            .minor = edit->minor,
                            .access = edit->permissions != NULL ? edit->permissions : "rwm",
                            .has_mode = edit->has_file_mode,
                            .mode = edit->file_mode,
                            .has_uid = edit->has_uid || user->uid > 0,
                            .uid = edit->has_uid ? edit->uid : user->uid,
                            .has_gid = edit->has_gid || user->gid > 0,
                            .gid = edit->has_gid ? edit->gid : user->gid };

    if (*node.access != '\0' && !are_permissions(node.access))
        return err_set(e, ERR_NOT_FOUND, "CDI device %s: permissions \"%s\" are not of r, w and m",
                       edit->path, node.access);
    if (check_target(edit->path, e) != ERR_OK || fill_from_host(edit, &node, e) != ERR_OK)
        return e->code;
    if (node.type == 'p') /* the device cgroup has no FIFOs */
        node.access = NULL;
    return add_node(nodes, &node, false, e);
}

static enum err_code add_edit_nodes(const struct rt_config *c, int rootfs_fd, struct rt_nodes *nodes,
                                    struct err *e)
{
    struct rt_user user = { 0 };
    enum err_code code = ERR_OK;

    if (c->edits == NULL || c->edits->n_nodes == 0)
        return ERR_OK;
    if (rt_user_resolve(c, rootfs_fd, &user, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; code == ERR_OK && i < c->edits->n_nodes; i++)
        code = add_edit_node(&c->edits->nodes[i], &user, nodes, e);
    rt_user_done(&user);
    return code;
}

/* ---- all ---- */

enum err_code rt_nodes_collect(const struct rt_config *c, int rootfs_fd, struct rt_nodes *ret, struct err *e)
{
    struct rt_nodes nodes = { 0 };
    const struct walk all = { .nodes = &nodes, .alone = true };

    enum err_code code = rt_privileged(c) ? add_tree(&all, "/dev", "/dev", 0, e) : ERR_OK;

    for (size_t i = 0; code == ERR_OK && i < c->n_devices; i++)
        code = add_device(&c->devices[i], &nodes, e);
    if (code == ERR_OK)
        code = add_edit_nodes(c, rootfs_fd, &nodes, e);
    if (code == ERR_OK)
        *ret = nodes;
    else
        rt_nodes_done(&nodes);
    return code;
}

static bool put_if(json_t *object, const char *key, bool given, uint32_t value)
{
    return !given || json_object_set_new(object, key, json_integer(value)) == 0;
}

static enum err_code append_node(const struct rt_node *node, json_t *list, struct err *e)
{
    const char type[2] = { node->type, '\0' };
    json_t *o = node->type == 'p' ? json_pack("{s:s,s:s}", "path", node->path, "type", type)
                                  : json_pack("{s:s,s:s,s:I,s:I}", "path", node->path, "type", type, "major",
                                              (json_int_t)node->major, "minor", (json_int_t)node->minor);

    if (o == NULL || json_array_append_new(list, json_incref(o)) != 0) {
        json_decref(o);
        return err_nomem(e);
    }
    bool ok = put_if(o, "fileMode", node->has_mode, node->mode) &&
              put_if(o, "uid", node->has_uid, node->uid) && put_if(o, "gid", node->has_gid, node->gid);
    json_decref(o);
    return ok ? ERR_OK : err_nomem(e);
}

static enum err_code append_rule(const struct rt_node *node, json_t *rules, struct err *e)
{
    const char type[2] = { node->type, '\0' };
    json_t *rule =
        json_pack("{s:b,s:s,s:I,s:I,s:s}", "allow", 1, "type", type, "major", (json_int_t)node->major,
                  "minor", (json_int_t)node->minor, "access", node->access);

    return rule != NULL && json_array_append_new(rules, rule) == 0 ? ERR_OK : err_nomem(e);
}

enum err_code rt_devices_build(const struct rt_config *c, int rootfs_fd, json_t *ret_devices,
                               json_t *ret_rules, struct err *e)
{
    bool privileged = rt_privileged(c);
    struct rt_nodes nodes;
    enum err_code code;

    /* Nothing except the nodes that the runtime adds (null, zero, full, random, urandom, tty, ptmx, pts), or
     * everything. */
    if (json_array_append_new(ret_rules, json_pack("{s:b,s:s}", "allow", (int)privileged, "access", "rwm")) !=
        0)
        return err_nomem(e);
    code = rt_nodes_collect(c, rootfs_fd, &nodes, e);
    if (code != ERR_OK)
        return code;
    for (size_t i = 0; code == ERR_OK && i < nodes.n; i++) {
        const struct rt_node *node = &nodes.v[i];

        if (!c->nodes_mounted || node->of_host)
            code = append_node(node, ret_devices, e);
        if (code == ERR_OK && !privileged && node->access != NULL && *node->access != '\0')
            code = append_rule(node, ret_rules, e);
    }
    rt_nodes_done(&nodes);
    return code;
}
