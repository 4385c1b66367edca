/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of a container: containerd's default list, then the volumes, ordered so that no mount hides an
 * earlier one. */
#include "agent/runtime/spec/internal.h"

#include "base/files/fs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum { DEFAULT_OPTIONS = 8 };

struct default_mount {
    const char *destination, *type, *source;
    const char *options[DEFAULT_OPTIONS];
};

/* containerd pkg/oci/mounts.go and its CRI plugin. */
static const struct default_mount default_mounts[] = {
    { "/proc", "proc", "proc", { "nosuid", "noexec", "nodev" } },
    { "/dev", "tmpfs", "tmpfs", { "nosuid", "strictatime", "mode=755", "size=65536k" } },
    { "/dev/pts",
      "devpts",
      "devpts",
      { "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5" } },
    { "/dev/mqueue", "mqueue", "mqueue", { "nosuid", "noexec", "nodev" } },
    { "/sys", "sysfs", "sysfs", { "nosuid", "noexec", "nodev", "ro" } },
    { "/sys/fs/cgroup", "cgroup", "cgroup", { "nosuid", "noexec", "nodev", "relatime", "ro" } },
};
#define HOST_SHM "/dev/shm"

bool rt_same_path(const char *a, const char *b)
{
    for (;;) {
        while (*a == '/')
            a++;
        while (*b == '/')
            b++;
        if (*a == '\0' || *b == '\0')
            return *a == *b;
        while (*a != '\0' && *a != '/' && *a == *b) {
            a++;
            b++;
        }
        if ((*a != '\0' && *a != '/') || (*b != '\0' && *b != '/'))
            return false;
    }
}

static size_t spec_mounts_depth(const char *path)
{
    size_t n = 0;

    for (; *path != '\0'; path++)
        if (*path != '/' && (path[1] == '/' || path[1] == '\0'))
            n++;
    return n;
}

static bool is_mounted_by_volume(const struct rt_config *c, const char *destination)
{
    size_t i;

    for (i = 0; i < c->n_mounts; i++)
        if (rt_same_path(c->mounts[i].destination, destination))
            return true;
    return false;
}

/* As in containerd: a volume replaces the default mount at the same path, and a volume at /dev replaces all
 * defaults below it. */
static bool is_default_wanted(const struct rt_config *c, const char *destination)
{
    return !is_mounted_by_volume(c, destination) &&
           !(str_starts(destination, "/dev/") && is_mounted_by_volume(c, "/dev"));
}

static enum err_code spec_mounts_append(json_t *mounts, const char *destination, const char *type,
                                        const char *source, json_t *options, struct err *e)
{
    json_t *m = json_pack("{s:s,s:s,s:s,s:o}", "destination", destination, "type", type, "source", source,
                          "options", options); /* takes ownership of the options, even on failure */

    if (m == NULL)
        return err_set(e, ERR_DATA_LOSS, "mount at \"%s\": a path is not UTF-8", destination);
    return json_array_append_new(mounts, m) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code append_default(const struct default_mount *m, bool privileged, json_t *mounts,
                                    struct err *e)
{
    json_t *options = json_array();
    size_t i;

    for (i = 0; i < DEFAULT_OPTIONS && m->options[i] != NULL; i++) {
        const char *o = privileged && strcmp(m->options[i], "ro") == 0 ? "rw" : m->options[i];

        if (options == NULL || json_array_append_new(options, json_string(o)) != 0) {
            json_decref(options);
            return err_nomem(e);
        }
    }
    return spec_mounts_append(mounts, m->destination, m->type, m->source, options, e);
}

/* ---- volumes ---- */

struct shared_search {
    const char *path;
    size_t length;
    char point[256];
    bool shared;
};

static bool note_mount(const struct fs_mount *m, void *arg)
{
    struct shared_search *s = arg;
    size_t n = strcmp(m->point, "/") == 0 ? 0 : strlen(m->point);

    if (strncmp(m->point, s->path, n) != 0 || (s->path[n] != '/' && s->path[n] != '\0') || n < s->length)
        return true;
    s->length = n; /* of two mounts at the same point, the later one is on top */
    s->shared = m->shared;
    snprintf(s->point, sizeof(s->point), "%s", m->point);
    return true;
}

/* On a mount that is not shared, Bidirectional would have no effect, so it is rejected, with containerd's
 * message. */
static enum err_code require_shared(const char *source, struct err *e)
{
    struct shared_search s = { .path = source };

    if (fs_each_mount(NULL, note_mount, &s, e) != ERR_OK)
        return e->code;
    if (!s.shared)
        return err_set(e, ERR_UNAVAILABLE, "path \"%s\" is mounted on \"%s\" but it is not a shared mount",
                       source, s.point);
    return ERR_OK;
}

/* In a user namespace existing flags of a mount are locked: a runtime that makes it read-only must repeat
 * them, and runc 1.1 only repeats those in the list. */
static enum err_code keep_flags(const char *source, json_t *options, struct err *e)
{
    static const struct {
        unsigned long flag;
        const char *option;
    } flags[] = { { ST_NOSUID, "nosuid" },   { ST_NODEV, "nodev" },           { ST_NOEXEC, "noexec" },
                  { ST_NOATIME, "noatime" }, { ST_NODIRATIME, "nodiratime" }, { ST_RELATIME, "relatime" } };
    struct statvfs fs;

    if (statvfs(source, &fs) != 0)
        return err_sys(e, errno, "stat the file system of %s", source);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if ((fs.f_flag & flags[i].flag) != 0 &&
            json_array_append_new(options, json_string(flags[i].option)) != 0)
            return err_nomem(e);
    return ERR_OK;
}

static enum err_code append_edit(const struct rt_config *c, const struct rt_mount *m, json_t *mounts,
                                 struct err *e)
{
    bool bind = rt_mount_is_bind(m);
    json_t *options = rt_edit_mount_options(m, c->userns != NULL);

    if (options == NULL)
        return err_set(e, ERR_DATA_LOSS, "CDI mount at \"%s\": an option is not UTF-8", m->destination);
    if (c->userns != NULL && bind && keep_flags(m->source, options, e) != ERR_OK) {
        json_decref(options);
        return e->code;
    }
    return spec_mounts_append(mounts, m->destination, bind ? "bind" : m->edit->type, m->source, options, e);
}

static enum err_code append_volume(const struct rt_host *host, const struct rt_config *c,
                                   const struct rt_mount *m, json_t *mounts, struct err *e)
{
    json_t *options;
    const char *propagation = m->propagation != NULL ? m->propagation : "rprivate";

    if (m->recursive_read_only && !host->features.recursive_read_only)
        return err_set(e, ERR_UNIMPLEMENTED, "%s on this kernel cannot mount \"%s\" recursively read-only",
                       host->features.runtime_name, m->destination);
    if (strcmp(propagation, "rshared") == 0 && require_shared(m->source, e) != ERR_OK)
        return e->code;
    options = json_pack("[s,s,s]", "rbind", propagation,
                        m->recursive_read_only ? "rro"
                        : m->read_only         ? "ro"
                                               : "rw");
    if ((c->userns != NULL || m->image) && options != NULL && keep_flags(m->source, options, e) != ERR_OK) {
        json_decref(options);
        return e->code;
    }
    return spec_mounts_append(mounts, m->destination, "bind", m->source, options, e);
}

/* The root's propagation must not be less than a mount's: rshared > rslave > the runtime's default. */
static void note_propagation(const struct rt_mount *m, const char **ret)
{
    if (str_eq(m->propagation, "rshared"))
        *ret = "rshared";
    else if (str_eq(m->propagation, "rslave") && !str_eq(*ret, "rshared"))
        *ret = "rslave";
}

enum err_code rt_mounts_build(const struct rt_host *host, const struct rt_config *c, json_t *ret_mounts,
                              const char **ret_root_propagation, struct err *e)
{
    size_t i, done = 0, level;

    *ret_root_propagation = NULL;
    for (i = 0; i < ARRAY_LEN(default_mounts); i++)
        if (is_default_wanted(c, default_mounts[i].destination) &&
            append_default(&default_mounts[i], rt_privileged(c), ret_mounts, e) != ERR_OK)
            return e->code;
    if (is_default_wanted(c, HOST_SHM) &&
        spec_mounts_append(ret_mounts, HOST_SHM, "bind", c->shm_path != NULL ? c->shm_path : HOST_SHM,
                           json_pack("[s,s,s,s,s,s]", "rbind", "rprivate", "rw", "nosuid", "noexec", "nodev"),
                           e) != ERR_OK)
        return e->code;

    /* Stable by depth, so that a volume at /a does not hide an earlier one at /a/b. */
    for (level = 0; done < c->n_mounts; level++)
        for (i = 0; i < c->n_mounts; i++) {
            const struct rt_mount *m = &c->mounts[i];

            if (spec_mounts_depth(m->destination) != level)
                continue;
            if (m->edit != NULL ? append_edit(c, m, ret_mounts, e) != ERR_OK
                                : append_volume(host, c, m, ret_mounts, e) != ERR_OK)
                return e->code;
            note_propagation(m, ret_root_propagation);
            done++;
        }
    return ERR_OK;
}
