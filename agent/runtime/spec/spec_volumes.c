/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes declared by an image (VOLUME). Each is a folder of the container's root, created if no layer has
 * it. It stays writable if the root is read-only: its data is in the overlay like other files, and only the
 * root's mount is read-only. */
#include "agent/runtime/spec/internal.h"

#include "base/arena.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VOLUME_MODE 0755 /* as in containerd */

struct search {
    const struct rt_config *c;
    int root_fd;
    char root[PATH_MAX];  /* its path on the host, links resolved */
    char place[PATH_MAX]; /* the volume's path below it, links resolved; clean, relative */
};

static enum err_code spec_volumes_path_of(int fd, char ret[PATH_MAX], struct err *e)
{
    char link[40];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, ret, PATH_MAX - 1);
    if (n < 0)
        return err_sys(e, errno, "read %s", link);
    ret[n] = '\0';
    return ERR_OK;
}

/* The destination of a pod's mount, with the image's links resolved as far as they exist. */
static void spec_volumes_resolve(const struct search *s, const char *destination, char ret[PATH_MAX])
{
    struct err e = { 0 };
    fd_auto fd = fs_open_in_root(s->root_fd, destination, O_PATH, 0, &e);
    char path[PATH_MAX];

    if (fd >= 0 && spec_volumes_path_of(fd, path, &e) == ERR_OK && str_starts(path, s->root))
        snprintf(ret, PATH_MAX, "%s", path + strlen(s->root));
    else
        snprintf(ret, PATH_MAX, "%s", destination);
    fs_path_clean(ret);
}

/* Mounts of the runtime and the pod hide the image's content. */
static bool spec_volumes_is_hidden(const struct search *s)
{
    static const char *const defaults[] = { "proc", "dev", "sys" };
    char destination[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        if (fs_path_is_at_or_below(s->place, defaults[i]))
            return true;
    for (size_t i = 0; i < s->c->n_mounts; i++) {
        spec_volumes_resolve(s, s->c->mounts[i].destination, destination);
        if (fs_path_is_at_or_below(s->place, destination))
            return true;
    }
    return s->place[0] == '\0'; /* the root itself is the pod's decision */
}

/* By its literal path, independent of the image's content. */
static bool is_mounted_over(const struct rt_config *c, const char *volume)
{
    char own[PATH_MAX], destination[PATH_MAX];

    snprintf(own, sizeof(own), "%s", volume);
    for (size_t i = 0; i < c->n_mounts; i++) {
        snprintf(destination, sizeof(destination), "%s", c->mounts[i].destination);
        if (fs_path_is_at_or_below(fs_path_clean(own), fs_path_clean(destination)))
            return true;
    }
    return false;
}

/* The location of `rest` below an open folder. */
static enum err_code set_place(struct search *s, int folder_fd, const char *rest, struct err *e)
{
    char path[PATH_MAX];

    if (spec_volumes_path_of(folder_fd, path, e) != ERR_OK)
        return e->code;
    if (!str_starts(path, s->root) ||
        snprintf(s->place, PATH_MAX, "%s/%s", path + strlen(s->root), rest) >= PATH_MAX)
        return err_set(e, ERR_INVALID, "path is too long");
    fs_path_clean(s->place);
    return ERR_OK;
}

static int spec_volumes_make_folder(const struct search *s, int parent_fd, const char *name, struct err *e)
{
    uid_t owner = s->c->userns != NULL ? s->c->first_id : 0;
    int fd;

    if (mkdirat(parent_fd, name, VOLUME_MODE) != 0 || fchmodat(parent_fd, name, VOLUME_MODE, 0) != 0 ||
        fchownat(parent_fd, name, owner, owner, AT_SYMLINK_NOFOLLOW) != 0 ||
        (fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
        err_sys(e, errno, "create folder %s", name); /* EEXIST: a dangling link */
        return -1;
    }
    return fd;
}

/* Element by element, resolving each link inside the root. s->place is the result; false: nothing to mount,
 * or an error. */
static bool find_folder(struct search *s, const char *volume, struct err *e)
{
    fd_auto at = openat(s->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[PATH_MAX];
    size_t n = 0;

    while (at >= 0 && volume[n] != '\0') {
        struct err why = { 0 };
        size_t name = n + strspn(volume + n, "/");
        int next;

        n = name + strcspn(volume + name, "/");
        snprintf(path, sizeof(path), "%.*s", (int)n, volume);
        next = fs_open_in_root(s->root_fd, path, O_PATH | O_DIRECTORY, 0, &why);
        if (next < 0 && why.sys == ENOENT) {
            if (set_place(s, at, volume + name, e) != ERR_OK || spec_volumes_is_hidden(s))
                return false;
            next = spec_volumes_make_folder(s, at, path + name, e);
        } else if (next < 0) {
            *e = why;
        }
        close(at);
        at = next;
    }
    return at >= 0 && set_place(s, at, "", e) == ERR_OK && !spec_volumes_is_hidden(s);
}

enum err_code rt_volumes_add(const struct rt_config *c, int rootfs_fd, struct arena *arena,
                             struct rt_config *ret, struct err *e)
{
    const struct img_strs *volumes = &c->image->volumes;
    struct search s = { .c = c, .root_fd = rootfs_fd };
    struct rt_mount *list;

    *ret = *c;
    if (volumes->n == 0)
        return ERR_OK;
    list = arena_alloc(arena, (c->n_mounts + volumes->n) * sizeof(*list));
    if (list == NULL)
        return err_nomem(e);
    if (c->n_mounts > 0)
        memcpy(list, c->mounts, c->n_mounts * sizeof(*list));
    ret->mounts = list;
    if (spec_volumes_path_of(rootfs_fd, s.root, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < volumes->n; i++) {
        bool found = !is_mounted_over(c, volumes->v[i]) && find_folder(&s, volumes->v[i], e);
        if (e->code != ERR_OK) {
            err_wrap(e, "volume \"%.200s\" of the image", volumes->v[i]);
            e->code = ERR_UNAVAILABLE; /* not an error of the pod's configuration */
            return e->code;
        }
        if (!found || !rt_read_only_root(c))
            continue;
        list[ret->n_mounts] = (struct rt_mount){ .source = arena_printf(arena, "%s/%s", s.root, s.place),
                                                 .destination = arena_printf(arena, "/%s", s.place) };
        if (list[ret->n_mounts].source == NULL || list[ret->n_mounts].destination == NULL)
            return err_nomem(e);
        ret->n_mounts++;
    }
    return ERR_OK;
}
