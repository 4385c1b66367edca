#include "agent/runtime/live_mount.h"

#include "agent/runtime/container_internal.h"
#include "agent/runtime/idmap.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTINFO_MAX (64 * 1024 * 1024)
#define ABOVE_MAX 64 /* mounts that killed runs left on top of each other */
#define PATH_SIZE 4096

struct source { /* what is to be seen */
    int tree;   /* a mount of it, attached nowhere; -1: nothing to do */
    struct stat st;
};

/* ---- on the host ------------------------------------------------------------------------------- */

static enum err_code open_source(const struct live_mount *m, int userns_fd, struct source *ret, struct err *e)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE };
    fd_auto volume = open(m->volume_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[64];

    ret->tree = -1;
    if (volume < 0)
        return err_sys(e, errno, "open volume %s", m->volume_path);
    fd_auto file = fs_open_beneath(volume, m->sub, O_PATH, 0, e);
    if (file < 0 && e->code == ERR_NOT_FOUND) {
        *e = (struct err){ 0 };
        return ERR_OK;
    }
    if (file < 0)
        return e->code;
    if (fstat(file, &ret->st) != 0)
        return err_sys(e, errno, "stat %s", m->sub);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    fd_auto tree = userns_fd >= 0 ? idmap_mount(path, userns_fd, e)
                                  : open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return e->code != ERR_OK ? e->code : err_sys(e, errno, "clone the mount of %s", m->sub);
    if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) != 0)
        return err_sys(e, errno, "make the mount of %s read-only", m->sub);
    ret->tree = take_fd(&tree);
    return ERR_OK;
}

/* ---- in the container's mount namespace ------------------------------------------------------------- */

struct inside {
    int namespace, proc_fds; /* of the container; /proc/self/fd as the host has it */
    char *mountinfo;         /* of the container */
};

static enum err_code enter(const struct inside *in, struct err *e)
{
    return setns(in->namespace, CLONE_NEWNS) == 0
               ? ERR_OK
               : err_sys(e, errno, "enter the container's mount namespace");
}

/* What is at the destination now: on top of all that is mounted there. */
static int open_top(const char *destination, struct err *e)
{
    fd_auto root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *path = destination + strspn(destination, "/");

    if (root < 0) {
        err_sys(e, errno, "open the container's root");
        return -1;
    }
    return fs_open_in_root(root, path[0] != '\0' ? path : ".", O_PATH, 0, e);
}

static enum err_code look(int fd, struct statx *ret, struct err *e)
{
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, ret) != 0)
        return err_sys(e, errno, "statx");
    if ((ret->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0 || (ret->stx_mask & STATX_MNT_ID) == 0)
        return err_set(e, ERR_UNIMPLEMENTED, "the kernel does not tell mounts apart (Linux 5.8)");
    return ERR_OK;
}

static bool is_same(const struct stat *st, const struct source *s)
{
    return st->st_dev == s->st.st_dev && st->st_ino == s->st.st_ino;
}

/* The path under which the container has it, symlinks resolved. */
static enum err_code canonical(const struct inside *in, int fd, char ret[PATH_SIZE], struct err *e)
{
    static const char gone[] = " (deleted)";
    char name[16];
    struct stat st;

    snprintf(name, sizeof(name), "%d", fd);
    ssize_t n = readlinkat(in->proc_fds, name, ret, PATH_SIZE - 1);
    if (n < 0 || fstat(fd, &st) != 0)
        return err_sys(e, errno, "where is it mounted");
    ret[n] = '\0';
    if (str_ends(ret, gone)) /* the version that it shows was removed */
        ret[n - (ssize_t)(sizeof(gone) - 1)] = '\0';
    return ret[0] == '/' && ret[1] != '\0' ? ERR_OK : err_set(e, ERR_PRECONDITION, "it is mounted nowhere");
}

/* A line of mountinfo: "<id> ... <options> shared:1 master:2 - ...".  What makes it as it was after it was
 * shared for a moment; 0: it was shared before. */
static uint64_t propagation_of(const char *mountinfo, uint64_t id)
{
    for (const char *line = mountinfo; line != NULL && *line != '\0';) {
        const char *end = strchrnul(line, '\n'), *dash = strstr(line, " - ");
        if (strtoull(line, NULL, 10) == id && dash != NULL && dash < end) {
            const char *shared = strstr(line, " shared:"), *master = strstr(line, " master:");
            return shared != NULL && shared < dash   ? 0
                   : master != NULL && master < dash ? MS_SLAVE
                                                     : MS_PRIVATE;
        }
        line = *end == '\n' ? end + 1 : NULL;
    }
    return 0;
}

/* The root of the mount that `fd` is in: its propagation is set there. */
static int open_mount_root(int fd, struct statx *ret, struct err *e)
{
    fd_auto at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (unsigned i = 0; at >= 0 && i < PATH_SIZE; i++) {
        if (look(at, ret, e) != ERR_OK)
            return -1;
        if ((ret->stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0)
            return take_fd(&at);
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = up;
    }
    err_sys(e, at < 0 ? errno : ELOOP, "find the mount below");
    return -1;
}

static enum err_code set_propagation(int fd, uint64_t how, struct err *e)
{
    struct mount_attr attr = { .propagation = how };

    return mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0
               ? ERR_OK
               : err_sys(e, errno, "set the propagation of the mount below");
}

/* Puts the tree at `name` of the folder, beneath what covers it, and comes back. */
static enum err_code put_beneath(const struct inside *in, int folder, const char *name, int tree,
                                 struct err *e)
{
    fd_auto copy = open_tree(folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (copy < 0)
        return err_sys(e, errno, "clone the mount below");
    /* A copy that is attached nowhere cannot be mounted on: it gets a place in a namespace of this process.
     */
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        move_mount(copy, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_sys(e, errno, "make a mount namespace");
    if (move_mount(tree, "", copy, name, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_sys(e, errno, "mount the new version");
    return enter(in, e);
}

/* Takes off what lies on top of the new version. */
static enum err_code uncover(const char *path, const struct source *s, struct err *e)
{
    for (unsigned i = 0; i < ABOVE_MAX; i++) {
        fd_auto top = open_top(path, e);
        struct stat st;
        if (top < 0)
            return e->code;
        if (fstat(top, &st) != 0)
            return err_sys(e, errno, "stat");
        if (is_same(&st, s))
            return set_propagation(top, MS_PRIVATE, e);
        if (st.st_dev != s->st.st_dev)
            break;
        if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
            return err_sys(e, errno, "unmount the old version");
    }
    return err_set(e, ERR_PRECONDITION, "the new version did not come to light");
}

static enum err_code replace(const struct inside *in, const struct live_mount *m, const struct source *s,
                             struct err *e)
{
    char path[PATH_SIZE], above[PATH_SIZE];
    struct statx st, below;
    struct stat plain;
    fd_auto top = open_top(m->destination, e);

    if (top < 0 || look(top, &st, e) != ERR_OK)
        return e->code;
    if (fstat(top, &plain) != 0)
        return err_sys(e, errno, "stat");
    if (is_same(&plain, s))
        return ERR_OK;
    if (plain.st_dev != s->st.st_dev || (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
        return err_set(e, ERR_PRECONDITION, "the volume is not what is mounted there");
    if (S_ISDIR(plain.st_mode) != S_ISDIR(s->st.st_mode))
        return err_set(e, ERR_PRECONDITION,
                       "a folder cannot take the place of a file, nor a file that of a folder");
    if (canonical(in, top, path, e) != ERR_OK)
        return e->code;
    char *name = strrchr(path, '/') + 1;
    snprintf(above, sizeof(above), "%.*s", (int)(name - path), path);
    fd_auto folder = open_top(above, e);
    if (folder < 0)
        return e->code;
    fd_auto root = open_mount_root(folder, &below, e);
    if (root < 0)
        return e->code;
    uint64_t before = propagation_of(in->mountinfo, below.stx_mnt_id);
    if (set_propagation(root, MS_SHARED, e) != ERR_OK)
        return e->code;
    if (put_beneath(in, folder, name, s->tree, e) == ERR_OK)
        (void)!uncover(path, s, e);
    struct err ignored = { 0 };
    if (before != 0 && (e->code == ERR_OK || enter(in, &ignored) == ERR_OK))
        (void)!set_propagation(root, before, e->code == ERR_OK ? e : &ignored);
    return e->code;
}

/* ---- both -------------------------------------------------------------------------------------------- */

static enum err_code open_inside(const struct live_mounts *l, struct inside *in, struct err *e)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)l->pid);
    in->namespace = open(path, O_RDONLY | O_CLOEXEC);
    in->proc_fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)l->pid);
    /* The order matters: what stands in the cgroup now had this number before, too. */
    if (in->namespace < 0 || in->proc_fds < 0 ||
        fs_read_at(AT_FDCWD, path, MOUNTINFO_MAX, &in->mountinfo, NULL, e) != ERR_OK ||
        !rt_is_in_cgroup(l->pid, l->id)) {
        *e = (struct err){ 0 };
        return err_set(e, ERR_NOT_FOUND, "container %.12s is not running", l->id);
    }
    return ERR_OK;
}

enum err_code live_mounts_follow(const struct live_mounts *l, struct err *e)
{
    struct inside in = { .namespace = -1, .proc_fds = -1 };
    mem_auto struct source *sources = calloc(l->n, sizeof(*sources));
    struct err first = { 0 };
    fd_auto userns = -1;

    /* Descriptors and text go with the child. */
    if (sources == NULL)
        return err_nomem(e);
    if (l->userns != NULL && (userns = idmap_open(l->userns, e)) < 0)
        return e->code;
    for (size_t i = 0; i < l->n; i++)
        if (open_source(&l->v[i], userns, &sources[i], e) != ERR_OK)
            return err_wrap(e, "subPath %.256s", l->v[i].sub);
    if (open_inside(l, &in, e) != ERR_OK || enter(&in, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < l->n; i++) {
        struct err one = { 0 };
        if (sources[i].tree >= 0 && replace(&in, &l->v[i], &sources[i], &one) != ERR_OK &&
            first.code == ERR_OK) {
            err_wrap(&one, "%.256s", l->v[i].destination);
            first = one;
        }
    }
    if (first.code != ERR_OK)
        *e = first;
    return e->code;
}
