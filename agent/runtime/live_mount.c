/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/live_mount.h"

#include "agent/runtime/container_internal.h"
#include "agent/runtime/mount/idmap.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTINFO_MAX (64 * 1024 * 1024)
/* Mounts stacked by killed runs, and mounts that moved meanwhile. */
#define ROUNDS_MAX 64
#define PATH_SIZE 4096

#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x200 /* Linux 6.5 */
#endif

struct source { /* the new content */
    int tree;   /* a detached mount of it; -1: nothing to do */
    struct stat st;
    const char *sub;
    char volume[PATH_SIZE]; /* the end of the volume's path: pod and name */
};

/* "/b/c" of "/a/b/c". */
static const char *last_two(const char *path)
{
    const char *at = path + strlen(path);

    for (unsigned n = 0; n < 2 && at > path;)
        if (*--at == '/')
            n++;
    return at;
}

/* ---- on the host ---- */

static enum err_code open_source(const struct live_mount *m, int userns_fd, struct source *ret, struct err *e)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE };
    fd_auto volume = open(m->volume_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[64], real[PATH_SIZE];
    ssize_t n;

    ret->tree = -1;
    ret->sub = m->sub;
    if (volume < 0)
        return err_sys(e, errno, "open volume %s", m->volume_path);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", volume);
    if ((n = readlink(path, real, sizeof(real) - 1)) < 0)
        return err_sys(e, errno, "read %s", path);
    real[n] = '\0';
    snprintf(ret->volume, sizeof(ret->volume), "%s", last_two(real));
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

/*
 * ---- in the container's mount namespace ----
 *
 * The container may rename its folders at any moment. So a path is only used to find a mount, which is then
 * identified by its id and its content, and accessed by descriptors.
 */

struct inside {
    int namespace; /* of the container */
    int proc_self; /* the host's /proc/self */
    /* and its "fd". */
    int proc_fds;
};

struct place {
    uint64_t id, parent;
    char path[PATH_SIZE]; /* when it was examined */
};

static enum err_code live_mount_enter(const struct inside *in, struct err *e)
{
    return setns(in->namespace, CLONE_NEWNS) == 0
               ? ERR_OK
               : err_sys(e, errno, "enter the container's mount namespace");
}

static int open_root(struct err *e)
{
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        err_sys(e, errno, "open the container's root");
    return root;
}

/* The object that is currently topmost at the path. */
static int open_top(const char *path, bool symlinks, struct err *e)
{
    fd_auto root = open_root(e);
    const char *below = path + strspn(path, "/");

    if (root < 0)
        return -1;
    if (below[0] == '\0')
        below = ".";
    return symlinks ? fs_open_in_root(root, below, O_PATH, 0, e)
                    : fs_open_in_root_plain(root, below, O_PATH, 0, e);
}

static enum err_code live_mount_look(int fd, struct statx *ret, struct err *e)
{
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, ret) != 0)
        return err_sys(e, errno, "statx");
    return ERR_OK;
}

static bool is_mount(const struct statx *st, uint64_t id)
{
    return (st->stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 && st->stx_mnt_id == id;
}

static bool live_mount_is_same(const struct stat *st, const struct source *s)
{
    return st->st_dev == s->st.st_dev && st->st_ino == s->st.st_ino;
}

/* Whether a mount shows any version of the source: "<volume>/..<generation>/<sub>", perhaps removed. */
static bool is_version(const char *root, const struct source *s)
{
    static const char gone[] = "//deleted";
    size_t n = strlen(root), sub = strlen(s->sub), volume = strlen(s->volume);

    if (str_ends(root, gone))
        n -= sizeof(gone) - 1;
    if (n <= sub || memcmp(root + n - sub, s->sub, sub) != 0 || root[n - sub - 1] != '/')
        return false;
    n -= sub + 1;
    const char *slash = memrchr(root, '/', n);
    if (slash == NULL || strncmp(slash, "/..", 3) != 0)
        return false;
    n = (size_t)(slash - root);
    return n >= volume && memcmp(root + n - volume, s->volume, volume) == 0;
}

struct versions {
    const struct source *s;
    size_t n, skip; /* mounts that show a version; number of those to skip */
    uint64_t id;    /* of the wanted one; 0: any */
    struct place *ret;
    bool found;
};

static bool live_mount_note_version(const struct fs_mount *m, void *arg)
{
    struct versions *v = arg;

    if (!is_version(m->root, v->s) || (v->id != 0 && v->id != m->id) || v->n++ < v->skip)
        return true;
    v->ret->id = m->id;
    v->ret->parent = m->parent;
    v->found = snprintf(v->ret->path, PATH_SIZE, "%s", m->point) < PATH_SIZE;
    return false;
}

static enum err_code each_mount(const struct inside *in, bool (*fn)(const struct fs_mount *m, void *arg),
                                void *arg, struct err *e)
{
    str_auto text = NULL;

    if (fs_read_at(in->proc_self, "mountinfo", MOUNTINFO_MAX, &text, NULL, e) == ERR_OK)
        (void)fs_parse_mountinfo(text, NULL, fn, arg);
    return e->code;
}

/* The mount at the destination, if it shows the source. A descriptor; or -1, with *e, or without an error if
 * it does not. */
static int find_by_path(const struct inside *in, const char *destination, const struct source *s,
                        struct place *ret, struct err *e)
{
    struct err why = { 0 };
    struct statx st;
    fd_auto top = open_top(destination, true, &why);

    if (top < 0) {
        if (why.sys != ENOENT && why.sys != ENOTDIR && why.sys != ELOOP)
            *e = why;
        return -1;
    }
    if (live_mount_look(top, &st, e) != ERR_OK || (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
        return -1;
    struct versions v = { .s = s, .id = st.stx_mnt_id, .ret = ret };
    return each_mount(in, live_mount_note_version, &v, e) == ERR_OK && v.found ? take_fd(&top) : -1;
}

/* State of the source's mounts if the destination leads to none. */
struct search {
    bool current; /* a mount is up to date */
    bool moved;   /* a mount could not be reached: already renamed, or covered */
};

/* The container renamed the destination's folders: finds any outdated mount of the source. */
static int find_by_content(const struct inside *in, const struct source *s, struct place *ret,
                           struct search *found, struct err *e)
{
    *found = (struct search){ 0 };
    for (size_t i = 0; i < LIVE_MOUNTS_MAX; i++) {
        struct versions v = { .s = s, .skip = i, .ret = ret };
        struct err why = { 0 };
        struct stat plain;
        struct statx st;
        if (each_mount(in, live_mount_note_version, &v, e) != ERR_OK || !v.found)
            return -1;
        fd_auto top = open_top(ret->path, false, &why);
        if (top < 0 || live_mount_look(top, &st, &why) != ERR_OK || fstat(top, &plain) != 0 ||
            !is_mount(&st, ret->id))
            found->moved = true;
        else if (live_mount_is_same(&plain, s))
            found->current = true;
        else
            return take_fd(&top);
    }
    return -1;
}

/* Unmounts exactly the mount whose root is the descriptor, at its present path. */
static enum err_code take_off(const struct inside *in, int fd, struct err *e)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", fd);
    if (fchdir(in->proc_fds) != 0 || umount2(name, MNT_DETACH) != 0)
        return err_sys(e, errno, "unmount the old version");
    return ERR_OK;
}

/* ---- beneath, before Linux 6.5 ---- */

/* The root of the mount containing `fd`, where its propagation is set. */
static int open_mount_root(int fd, struct statx *ret, struct err *e)
{
    fd_auto at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (unsigned i = 0; at >= 0 && i < PATH_SIZE; i++) {
        if (live_mount_look(at, ret, e) != ERR_OK)
            return -1;
        if ((ret->stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0)
            return take_fd(&at);
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = up;
    }
    err_sys(e, at < 0 ? errno : ELOOP, "find the underlying mount");
    return -1;
}

/* A mount left shared by a killed call is recognized by a mark, set and removed together with the
 * propagation: MOUNT_ATTR_NODIRATIME, on which no container relies. It cannot be set on a mount with locked
 * times (EPERM). */
static enum err_code set_propagation(int fd, uint64_t how, struct err *e)
{
    struct mount_attr attr = { .propagation = how };

    if (how == MS_SHARED)
        attr.attr_set = MOUNT_ATTR_NODIRATIME;
    else
        attr.attr_clr = MOUNT_ATTR_NODIRATIME;
    if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
        return ERR_OK;
    attr = (struct mount_attr){ .propagation = how };
    if (errno == EPERM && mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
        return ERR_OK;
    return err_sys(e, errno, "set the propagation of the underlying mount");
}

struct below {
    uint64_t id;
    bool found, shared, slave, marked;
};

static bool note_below(const struct fs_mount *m, void *arg)
{
    struct below *b = arg;

    if (m->id != b->id)
        return true;
    b->found = true;
    b->shared = m->shared;
    b->slave = m->slave;
    b->marked = strstr(m->options, "nodiratime") != NULL;
    return false;
}

/* A copy of the mount below, which becomes the copy's slave: mounts in the copy propagate to it, but not vice
 * versa. It is shared only during two calls; once it is a slave, the kernel restores its propagation when the
 * copy ends, at the latest with this process. */
static int copy_below(int folder, int root, const struct below *b, struct err *e)
{
    bool was_shared = b->shared && !b->marked;

    if (!was_shared && set_propagation(root, MS_SHARED, e) != ERR_OK)
        return -1;
    fd_auto copy = open_tree(folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (copy < 0)
        err_sys(e, errno, "clone the underlying mount");
    if (!was_shared)
        ERR_IGNORE(set_propagation(root, MS_SLAVE, e->code == ERR_OK ? e : ERR_IGNORED));
    return e->code == ERR_OK ? take_fd(&copy) : -1;
}

/* Mounts the tree at `name` of the copy, in a new mount namespace, and returns to the container's namespace.
 */
static enum err_code mount_in_copy(const struct inside *in, int copy, const char *name, int tree,
                                   struct err *e)
{
    /* Nothing can be mounted on a detached copy. */
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return err_sys(e, errno, "create a mount namespace");
    if (move_mount(copy, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        err_sys(e, errno, "attach the copy");
    else if (move_mount(tree, "", copy, name, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        err_sys(e, errno, "mount the new version");
    return live_mount_enter(in, e->code == ERR_OK ? e : ERR_IGNORED);
}

static enum err_code propagate_beneath(const struct inside *in, const struct place *at, int tree,
                                       struct err *e)
{
    const char *name = strrchr(at->path, '/') + 1;
    str_auto above = strndup(at->path, (size_t)(name - at->path));
    struct below b = { 0 };
    struct statx st;

    if (above == NULL)
        return err_nomem(e);
    fd_auto folder = open_top(above, false, e);
    if (folder < 0)
        return e->code;
    /* In this folder the mounted-on entry can neither be renamed nor removed: no race from here on. */
    fd_auto top = fs_open_in_root_plain(folder, name, O_PATH, 0, e);
    if (top < 0 || live_mount_look(top, &st, e) != ERR_OK)
        return e->code;
    if (!is_mount(&st, at->id))
        return err_set(e, ERR_UNAVAILABLE, "the container renamed its folders in the meantime");
    fd_auto root = open_mount_root(folder, &st, e);
    if (root < 0)
        return e->code;
    b.id = st.stx_mnt_id;
    if (each_mount(in, note_below, &b, e) != ERR_OK)
        return e->code;
    if (!b.found)
        return err_set(e, ERR_UNAVAILABLE, "the underlying mount is unknown");
    fd_auto copy = copy_below(folder, root, &b, e);
    if (copy < 0)
        return e->code;
    return mount_in_copy(in, copy, name, tree, e);
}

/* ---- one mount ---- */

static enum err_code put_beneath(const struct inside *in, int top, const struct place *at, int tree,
                                 struct err *e)
{
    if (move_mount(tree, "", top, "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | MOVE_MOUNT_BENEATH) == 0)
        return ERR_OK;
    if (errno != EINVAL)
        return err_sys(e, errno, "mount the new version");
    return propagate_beneath(in, at, tree, e);
}

/* A mount of the source that must be replaced, or is up to date; -1 with *e: there is none; with *again: the
 * container renamed its folders meanwhile; otherwise all are up to date. */
static int live_mount_find(const struct inside *in, const char *destination, const struct source *s,
                           struct place *ret, bool *again, struct err *e)
{
    struct search found;
    fd_auto top = find_by_path(in, destination, s, ret, e);

    *again = false;
    if (top < 0 && e->code == ERR_OK)
        top = find_by_content(in, s, ret, &found, e);
    else
        return take_fd(&top);
    if (top < 0 && e->code == ERR_OK) {
        *again = found.moved;
        if (!found.moved && !found.current)
            err_set(e, ERR_PRECONDITION, "the existing mount does not belong to the volume");
    }
    return take_fd(&top);
}

static enum err_code live_mount_replace(const struct inside *in, const struct live_mount *m,
                                        const struct source *s, struct err *e)
{
    bool put = false, again = false;

    for (unsigned i = 0; i < ROUNDS_MAX; i++) {
        struct place at, below;
        struct stat plain;
        fd_auto top = live_mount_find(in, m->destination, s, &at, &again, e);
        if (top < 0 && again && e->code == ERR_OK)
            continue;
        if (top < 0)
            return e->code;
        if (fstat(top, &plain) != 0)
            return err_sys(e, errno, "stat");
        if (live_mount_is_same(&plain, s))
            return put ? set_propagation(top, MS_PRIVATE, e) : ERR_OK;
        if (S_ISDIR(plain.st_mode) != S_ISDIR(s->st.st_mode))
            return err_set(e, ERR_PRECONDITION, "a folder cannot replace a file, nor a file a folder");
        /* A mount that a killed call put beneath is newer than the one that covers it. */
        struct versions v = { .s = s, .id = at.parent, .ret = &below };
        if (each_mount(in, live_mount_note_version, &v, e) != ERR_OK)
            return e->code;
        if (!v.found && put)
            break;
        if (!v.found) {
            if (put_beneath(in, top, &at, s->tree, e) != ERR_OK)
                return e->code;
            put = true;
        }
        if (take_off(in, top, e) != ERR_OK)
            return e->code;
    }
    return again ? err_set(e, ERR_UNAVAILABLE, "the container keeps renaming its folders")
                 : err_set(e, ERR_UNAVAILABLE, "the new mount is still covered");
}

/* ---- both ---- */

static enum err_code open_inside(const struct live_mounts *l, struct inside *in, struct err *e)
{
    struct presence its_own = presence_absent();
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)l->pid);
    in->namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (in->namespace < 0 && errno != ENOENT && errno != ESRCH)
        return err_sys(e, errno, "open the container's mount namespace");
    /* The order matters: a process that is in the cgroup now had this pid already when its namespace was
     * opened. */
    if (in->namespace >= 0)
        its_own = rt_is_in_cgroup(l->pid, l->id, e);
    if (presence_is_unknown(its_own))
        return e->code;
    if (presence_is_absent(its_own))
        return err_set(e, ERR_NOT_FOUND, "container %.12s is not running", l->id);
    in->proc_self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    in->proc_fds = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return in->proc_self >= 0 && in->proc_fds >= 0 ? ERR_OK : err_sys(e, errno, "open /proc/self");
}

enum err_code live_mounts_follow(const struct live_mounts *l, struct err *e)
{
    struct inside in = { .namespace = -1, .proc_self = -1, .proc_fds = -1 };
    mem_auto struct source *sources = calloc(l->n, sizeof(*sources));
    struct err first = { 0 };
    fd_auto userns = -1;

    /* Descriptors and text end with the child. */
    if (sources == NULL)
        return err_nomem(e);
    if (l->userns != NULL && (userns = idmap_open(l->userns, e)) < 0)
        return e->code;
    for (size_t i = 0; i < l->n; i++)
        if (open_source(&l->v[i], userns, &sources[i], e) != ERR_OK)
            return err_wrap(e, "subPath %.256s", l->v[i].sub);
    if (open_inside(l, &in, e) != ERR_OK || live_mount_enter(&in, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < l->n; i++) {
        struct err one = { 0 };
        if (sources[i].tree >= 0 && live_mount_replace(&in, &l->v[i], &sources[i], &one) != ERR_OK &&
            first.code == ERR_OK) {
            err_wrap(&one, "%.256s", l->v[i].destination);
            first = one;
        }
    }
    if (first.code != ERR_OK)
        *e = first;
    return e->code;
}
