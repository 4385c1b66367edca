/* SPDX-License-Identifier: Apache-2.0 */
/* node - the tmpfs shared by all payload volumes, and the owners of volumes on it or below pods_dir. */
#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"
#include "volumes/internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#define NAME_LIMIT 253 /* a DNS subdomain: the longest name Kubernetes allows for volumes and containers */
#define OWNERS_MAX 65536

enum err_code vol_check_name(const char *what, const char *name, struct err *e)
{
    size_t n = strlen(name);

    if (n == 0 || n > NAME_LIMIT || name[0] == '.')
        return err_set(e, ERR_INVALID, "%s \"%.80s\": must have 1 to %d characters and not start with a dot",
                       what, name, NAME_LIMIT);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("-_.", name[i]) == NULL)
            return err_set(e, ERR_INVALID, "%s \"%.253s\": only letters, digits, -, _ and . are allowed",
                           what, name);
    return ERR_OK;
}

enum err_code vol_join(char *ret, size_t size, struct err *e, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(ret, size, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= size)
        return err_set(e, ERR_RANGE, "path %.200s...: longer than %zu bytes", ret, size);
    return ERR_OK;
}

static void vol_node_free(struct vol_node *n)
{
    scope_close_p(&n->tmpfs_fd);
    scope_close_p(&n->pods_fd);
    free(n->tmpfs);
    free(n->pods);
    free(n);
}
SCOPE_DEFINE(struct vol_node, vol_node_free)

static enum err_code make_canonical(const char *path, mode_t mode, char **ret, struct err *e)
{
    enum err_code code = fs_mkdirs(path, mode, e);

    if (code != ERR_OK)
        return code;
    *ret = realpath(path, NULL); /* mounts are found by the path in mountinfo */
    return *ret != NULL ? ERR_OK : err_sys(e, errno, "resolve %s", path);
}

/* A restart with another size: resize the existing mount if its content fits. */
static void vol_node_resize(const struct vol_node *n, uint64_t bytes, bool noswap)
{
    struct statvfs st;
    char options[64];

    if (bytes == 0 || statvfs(n->tmpfs, &st) != 0 || st.f_frsize == 0 ||
        (uint64_t)st.f_blocks == (bytes + st.f_frsize - 1) / st.f_frsize)
        return;
    snprintf(options, sizeof(options), "size=%llu%s", (unsigned long long)bytes, noswap ? ",noswap" : "");
    if (mount(NULL, n->tmpfs, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) != 0)
        log_debug("volumes' tmpfs keeps its size", F_STR("path", n->tmpfs), F_STR("err", strerror(errno)));
}

/* A second mount over it would hide the files of running pods. */
static struct presence look_at_tmpfs(const struct vol_node *n, bool *ret_noswap, struct err *e)
{
    struct patience patience = { 0 };
    struct presence found;

    do {
        *e = (struct err){ 0 };
        found = vol_is_mounted(n->tmpfs, "tmpfs", ret_noswap, e);
    } while (presence_is_unknown(found) && patience_wait(&patience));
    return found;
}

enum err_code vol_node_open(struct vol_node **ret, const struct vol_node_options *o, bool *ret_swap_warning,
                            struct err *e)
{
    scoped(vol_node_free) struct vol_node *n = calloc(1, sizeof(*n));
    const struct vol_tmpfs t = {
        .size_bytes = o->tmpfs_bytes, .mode = 0700, .gid = -1, .flags = MS_NOSUID | MS_NODEV
    };
    bool noswap = false;

    if (n == NULL)
        return err_nomem(e);
    n->tmpfs_fd = n->pods_fd = -1;
    if (make_canonical(o->tmpfs_dir, 0700, &n->tmpfs, e) != ERR_OK ||
        make_canonical(o->pods_dir, 0750, &n->pods, e) != ERR_OK)
        return err_wrap(e, "volumes");
    switch (presence_of(look_at_tmpfs(n, &noswap, e))) {
    case PRESENCE_UNKNOWN:
        return err_wrap(e, "volumes");
    case PRESENCE_PRESENT:
        vol_node_resize(n, o->tmpfs_bytes, noswap);
        break;
    case PRESENCE_ABSENT:
        if (vol_tmpfs_mount(n->tmpfs, &t, &noswap, e) != ERR_OK)
            return err_wrap(e, "volumes");
        break;
    }
    n->tmpfs_fd = open(n->tmpfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (n->tmpfs_fd < 0)
        return err_sys(e, errno, "volumes: open %s", n->tmpfs);
    n->pods_fd = open(n->pods, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (n->pods_fd < 0)
        return err_sys(e, errno, "volumes: open %s", n->pods);
    *ret_swap_warning = !noswap && vol_swap_is_on();
    *ret = take_ptr(&n);
    return ERR_OK;
}

void vol_node_close(struct vol_node *n, bool remove)
{
    struct err e = { 0 };

    if (n == NULL)
        return;
    if (remove) {
        scope_close_p(&n->tmpfs_fd);
        n->tmpfs_fd = -1;
        if (fs_unmount_below(n->tmpfs, &e) != ERR_OK)
            log_debug("volumes' tmpfs stays mounted", F_ERR(&e));
        else
            fs_remove_quietly(AT_FDCWD, n->tmpfs);
    }
    vol_node_free(n);
}

/* ---- payload volumes ---- */

enum err_code vol_payload_path(const struct vol_node *n, const char *uid, const char *name, char *ret,
                               size_t size, struct err *e)
{
    if (vol_check_name("pod uid", uid, e) != ERR_OK || vol_check_name("volume", name, e) != ERR_OK)
        return e->code;
    return vol_join(ret, size, e, "%s/%s/%s", n->tmpfs, uid, name);
}

static enum err_code check_size(const struct vol_payload *p, struct err *e)
{
    size_t total = 0;

    for (size_t i = 0; i < p->n_files; i++)
        if (__builtin_add_overflow(total, p->files[i].size, &total) || total > VOL_PAYLOAD_MAX)
            return err_set(e, ERR_EXHAUSTED, "volume %s: its files have more than %u bytes together", p->name,
                           VOL_PAYLOAD_MAX);
    return ERR_OK;
}

static enum err_code set_root_mode(const struct vol_writer *w, mode_t mode, struct err *e)
{
    struct stat st;

    if (mode == 0)
        return ERR_OK;
    if (fstat(w->fd, &st) != 0)
        return err_sys(e, errno, "stat %s", w->target);
    mode |= st.st_mode & S_ISGID; /* of an earlier fsGroup */
    if ((st.st_mode & 07777) != mode && fchmod(w->fd, mode) != 0)
        return err_sys(e, errno, "chmod %s", w->target);
    return ERR_OK;
}

/* Everything below is world-readable, but only root may enter the tmpfs' root: a container's user sees its
 * bind mount. */
static enum err_code open_payload(const struct vol_node *n, struct vol_writer **ret, const char *path,
                                  struct err *e)
{
    if (vol_writer_open(ret, path, e) == ERR_OK || e->sys != ENOENT)
        return e->code;
    *e = (struct err){ 0 };
    if (fs_mkdirs_beneath(n->tmpfs_fd, path + strlen(n->tmpfs) + 1, 0755, e) != ERR_OK)
        return e->code;
    return vol_writer_open(ret, path, e);
}

enum err_code vol_payload_publish(struct vol_node *n, const struct vol_payload *p, bool *ret_changed,
                                  struct err *e)
{
    scoped(vol_writer_free) struct vol_writer *w = NULL;
    char path[VOL_PATH_MAX];

    if (vol_payload_path(n, p->uid, p->name, path, sizeof(path), e) != ERR_OK || check_size(p, e) != ERR_OK)
        return e->code;
    if (open_payload(n, &w, path, e) != ERR_OK || set_root_mode(w, p->root_mode, e) != ERR_OK)
        return err_wrap(e, "volume %s", p->name);
    if (p->ret_kept != NULL)
        vol_writer_keep(w, VOL_KEEP_MS);
    enum err_code code = vol_writer_publish(w, p->files, p->n_files, p->fs_group, ret_changed, e);
    if (p->ret_kept != NULL)
        *p->ret_kept = vol_writer_kept(w);
    return code != ERR_OK ? err_wrap(e, "volume %s", p->name) : ERR_OK;
}

struct presence vol_payload_published(const struct vol_node *n, const char *uid, const char *name,
                                      struct err *e)
{
    char path[VOL_PATH_MAX], data[VOL_PATH_MAX];

    if (vol_payload_path(n, uid, name, path, sizeof(path), e) != ERR_OK ||
        vol_join(data, sizeof(data), e, "%s/..data/.", path) != ERR_OK)
        return presence_unknown(e);
    return fs_look_at(AT_FDCWD, data, NULL, e);
}

void vol_payload_tidy(struct vol_node *n, const char *uid, const char *name, bool *ret_kept)
{
    scoped(vol_writer_free) struct vol_writer *w = NULL;
    struct err e = { 0 };
    char path[VOL_PATH_MAX];

    *ret_kept = false;
    if (vol_payload_path(n, uid, name, path, sizeof(path), &e) != ERR_OK)
        return;
    if (vol_writer_open(&w, path, &e) != ERR_OK) {
        *ret_kept = presence_is_unknown(presence_from_err(&e));
        return;
    }
    vol_writer_keep(w, VOL_KEEP_MS);
    vol_writer_tidy(w);
    *ret_kept = vol_writer_kept(w);
}

enum err_code vol_payload_mount_point(struct vol_node *n, const char *uid, const char *name, const char *sub,
                                      struct err *e)
{
    char path[VOL_PATH_MAX];

    if (vol_payload_path(n, uid, name, path, sizeof(path), e) != ERR_OK)
        return e->code;
    if (!fs_path_is_safe(sub) || strncmp(sub, "..", 2) == 0)
        return err_set(e, ERR_INVALID, "volume %s: mount point \"%.256s\" is not a path inside it", name,
                       sub);
    if (fs_mkdirs_beneath(n->tmpfs_fd, path + strlen(n->tmpfs) + 1, 0755, e) != ERR_OK)
        return err_wrap(e, "volume %s", name);
    fd_auto fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "volume %s: open %s", name, path);
    if (fs_mkdirs_beneath(fd, sub, 0755, e) != ERR_OK)
        return err_wrap(e, "volume %s", name);
    return ERR_OK;
}

enum err_code vol_shm_setup(struct vol_node *n, const char *uid, uint64_t size_bytes, char *ret_path,
                            size_t size, struct err *e)
{
    /* As on any Linux host, /dev/shm is world-writable, without devices or set-user-ID programs. */
    const struct vol_tmpfs t = { .size_bytes = size_bytes,
                                 .mode = 01777,
                                 .gid = -1,
                                 .flags = MS_NOSUID | MS_NODEV | MS_NOEXEC,
                                 .may_swap = true };
    char path[VOL_PATH_MAX];

    if (vol_check_name("pod uid", uid, e) != ERR_OK ||
        vol_join(path, sizeof(path), e, "%s/%s/.shm", n->tmpfs, uid) != ERR_OK)
        return e->code;
    if (fs_mkdirs_beneath(n->tmpfs_fd, path + strlen(n->tmpfs) + 1, 0755, e) != ERR_OK)
        return err_wrap(e, "shared memory");
    struct presence mounted = fs_look_mountpoint(path, e);
    if (presence_is_unknown(mounted) ||
        (presence_is_absent(mounted) && vol_tmpfs_mount(path, &t, NULL, e) != ERR_OK))
        return err_wrap(e, "shared memory");
    return vol_join(ret_path, size, e, "%s", path);
}

/* ---- owners ---- */

struct folders {
    struct strs *owners;
    int dir;
    struct err failed;
};

static bool vol_node_add_folder(const char *name, void *arg)
{
    struct folders *f = arg;
    struct err not_ours = { 0 };
    struct stat st;

    if (vol_check_name("pod uid", name, &not_ours) != ERR_OK)
        return true;
    switch (presence_of(fs_look_at(f->dir, name, &st, &f->failed))) {
    case PRESENCE_UNKNOWN:
        return false;
    case PRESENCE_ABSENT:
        return true;
    case PRESENCE_PRESENT:
        break;
    }
    if (!S_ISDIR(st.st_mode))
        return true;
    if (f->owners->n == OWNERS_MAX)
        err_set(&f->failed, ERR_EXHAUSTED, "more than %d pod folders", OWNERS_MAX);
    else if (!strs_add(f->owners, name))
        err_nomem(&f->failed);
    return f->failed.code == ERR_OK;
}

static enum err_code add_folders(struct strs *o, int dir, const char *path, struct err *e)
{
    struct folders f = { .owners = o, .dir = dir };

    if (presence_is_unknown(fs_list(dir, ".", vol_node_add_folder, &f, e)))
        return err_wrap(e, "list %s", path);
    if (f.failed.code != ERR_OK) {
        *e = f.failed;
        return err_wrap(e, "list %s", path);
    }
    return ERR_OK;
}

enum err_code vol_list_owners(struct vol_node *n, struct strs *ret, struct err *e)
{
    struct strs o = { 0 };

    if (add_folders(&o, n->tmpfs_fd, n->tmpfs, e) != ERR_OK ||
        add_folders(&o, n->pods_fd, n->pods, e) != ERR_OK) {
        strs_done(&o);
        return e->code;
    }
    strs_unique(&o);
    *ret = o;
    return ERR_OK;
}
