/* SPDX-License-Identifier: Apache-2.0 */
/* Device nodes of a container: those of plugins and, if privileged, all of the host. */
#include "agent/runtime/spec/internal.h"

#include "base/files/fs.h"

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

struct devices {
    json_t *list;
    json_t *rules; /* NULL: no rule per device */
    const char *permissions;
};

static enum err_code spec_devices_add_node(const struct devices *d, const struct stat *st, const char *target,
                                           struct err *e)
{
    const char *type = S_ISCHR(st->st_mode) ? "c" : "b";
    int major_nr = (int)major(st->st_rdev), minor_nr = (int)minor(st->st_rdev);
    json_t *node;

    if (json_array_size(d->list) >= DEVICES_MAX)
        return err_set(e, ERR_EXHAUSTED, "more than %d devices", DEVICES_MAX);
    node = json_pack("{s:s,s:s,s:i,s:i,s:i,s:i,s:i}", "path", target, "type", type, "major", major_nr,
                     "minor", minor_nr, "fileMode", (int)(st->st_mode & 07777), "uid", (int)st->st_uid, "gid",
                     (int)st->st_gid);
    if (node == NULL || json_array_append_new(d->list, node) != 0)
        return err_nomem(e);
    if (d->rules == NULL)
        return ERR_OK;
    node = json_pack("{s:b,s:s,s:i,s:i,s:s}", "allow", 1, "type", type, "major", major_nr, "minor", minor_nr,
                     "access", d->permissions);
    return node != NULL && json_array_append_new(d->rules, node) == 0 ? ERR_OK : err_nomem(e);
}

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
static enum err_code add_tree(const struct devices *d, const char *dir, const char *target, int level,
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
            code = add_tree(d, from, to, level + 1, e);
        else if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
            code = spec_devices_add_node(d, &st, to, e);
    }
    if (code == ERR_OK && errno != 0)
        code = err_sys(e, errno, "list %s", dir);
    closedir(stream);
    return code;
}

static enum err_code add_device(const struct rt_device *device, json_t *list, json_t *rules, struct err *e)
{
    struct devices d = { .list = list, .rules = rules, .permissions = device->permissions };
    struct stat st;

    if (*device->permissions == '\0' || strspn(device->permissions, "rwm") != strlen(device->permissions))
        return err_set(e, ERR_NOT_FOUND, "device %s: permissions \"%s\" are not of r, w and m",
                       device->host_path, device->permissions);
    if (stat(device->host_path, &st) != 0) {
        err_sys(e, errno, "device %s", device->host_path);
        return e->code;
    }
    if (S_ISDIR(st.st_mode))
        return add_tree(&d, device->host_path, device->container_path, 0, e);
    if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
        return err_set(e, ERR_NOT_FOUND, "device %s: not a device node", device->host_path);
    return spec_devices_add_node(&d, &st, device->container_path, e);
}

enum err_code rt_devices_build(const struct rt_config *c, json_t *ret_devices, json_t *ret_rules,
                               struct err *e)
{
    bool privileged = rt_privileged(c);
    size_t i;

    /* Nothing except what the runtime adds (null, zero, full, random, urandom, tty, ptmx, pts), or
     * everything. */
    if (json_array_append_new(ret_rules, json_pack("{s:b,s:s}", "allow", (int)privileged, "access", "rwm")) !=
        0)
        return err_nomem(e);
    if (privileged) {
        struct devices all = { .list = ret_devices };

        if (add_tree(&all, "/dev", "/dev", 0, e) != ERR_OK)
            return e->code;
    }
    for (i = 0; i < c->n_devices; i++)
        if (add_device(&c->devices[i], ret_devices, privileged ? NULL : ret_rules, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}
