/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/disk_usage.h"

#include "base/array.h"
#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#define NAMES_MAX (16u * 1024 * 1024) /* half a million folders side by side */
#define LINKS_MAX (256u * 1024)       /* 8 bytes each */
#define DEPTH_MAX 100000
#define LOOK_AT_CLOCK 32 /* entries between reads of the clock, which cost about as much as one entry */

/*
 * A folder is listed to its end, and the names of its subfolders are pushed on a stack; then the last of them
 * becomes the current folder. Its name stays on the stack, below the names of its own subfolders:
 *
 *     a \0 b \0 c \0 | c's: x \0 y \0 | y's: ...
 *
 * so the stack holds both the remaining work and the way back. Only the current folder is open.
 */
struct level {
    ino_t ino;
    size_t name; /* its position in `names`; its subfolders follow */
};

struct disk_usage {
    struct disk_usage_sum sum;
    int root;
    dev_t dev;
    DIR *dir;    /* the current folder */
    bool listed; /* completely */
    bool over;
    struct buf names;
    struct level *levels; /* [0]: the root */
    size_t depth, cap;    /* the current folder is levels[depth - 1] */
    uint64_t *links;      /* hashed; 0: free */
    size_t n_links, links_cap, links_max;
};

/* ---- files with several links ---- */

static size_t place_of(const uint64_t *links, size_t cap, uint64_t ino)
{
    size_t i = (size_t)(ino * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (cap - 1);

    while (links[i] != 0 && links[i] != ino)
        i = (i + 1) & (cap - 1);
    return i;
}

static bool links_grow(struct disk_usage *u)
{
    size_t cap = u->links_cap == 0 ? 64 : u->links_cap * 2;
    uint64_t *grown;

    if (u->n_links * 2 < u->links_cap)
        return true;
    grown = u->n_links < u->links_max ? calloc(cap, sizeof(*grown)) : NULL;
    if (grown == NULL)
        return false;
    for (size_t i = 0; i < u->links_cap; i++)
        if (u->links[i] != 0)
            grown[place_of(grown, cap, u->links[i])] = u->links[i];
    free(u->links);
    u->links = grown;
    u->links_cap = cap;
    return true;
}

static void count_linked(struct disk_usage *u, const struct statx *sx)
{
    size_t i;

    if (u->links_cap > 0 && u->links[place_of(u->links, u->links_cap, sx->stx_ino)] == sx->stx_ino)
        return;
    if (!links_grow(u)) { /* count each name's share: correct if all links are in the tree, never too much */
        u->sum.bytes += sx->stx_blocks * 512 / sx->stx_nlink;
        u->sum.partial = true;
        return;
    }
    i = place_of(u->links, u->links_cap, sx->stx_ino);
    u->links[i] = sx->stx_ino;
    u->n_links++;
    u->sum.bytes += sx->stx_blocks * 512;
    u->sum.inodes++;
}

/* ---- folders ---- */

static bool disk_usage_look(int at, const char *name, int flags, struct statx *ret)
{
    return statx(at, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
                 STATX_TYPE | STATX_INO | STATX_NLINK | STATX_BLOCKS, ret) == 0;
}

static bool same_mount(const struct disk_usage *u, const struct statx *sx)
{
    return makedev(sx->stx_dev_major, sx->stx_dev_minor) == u->dev &&
           (sx->stx_attributes & sx->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0;
}

static int disk_usage_open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Makes `fd` the current folder and takes ownership of it. */
static bool disk_usage_stand_in(struct disk_usage *u, int fd, bool listed)
{
    DIR *dir = fdopendir(fd);

    if (dir == NULL) {
        close(fd);
        return false;
    }
    if (u->dir != NULL)
        closedir(u->dir);
    u->dir = dir;
    u->listed = listed;
    return true;
}

static bool disk_usage_push(struct disk_usage *u, ino_t ino, size_t name)
{
    if (u->depth == DEPTH_MAX)
        return false;
    if (u->depth == u->cap) {
        if (!array_room(u->levels, u->cap))
            return false;
        u->cap++;
    }
    u->levels[u->depth++] = (struct level){ .ino = ino, .name = name };
    return true;
}

static void disk_usage_drop_from(struct disk_usage *u, size_t at)
{
    if (at < u->names.n) {
        u->names.n = at;
        u->names.p[at] = '\0';
    }
}

static const char *disk_usage_name_of(const struct disk_usage *u, size_t level)
{
    return u->names.p + u->levels[level].name;
}

/* The position in `names` of the current folder's remaining subfolders. */
static size_t first_to_do(const struct disk_usage *u)
{
    return u->depth == 1 ? 0 : u->levels[u->depth - 1].name + strlen(disk_usage_name_of(u, u->depth - 1)) + 1;
}

/* Returns to the deepest folder on the path that is still in place; the work below it is dropped. */
static bool walk_back(struct disk_usage *u)
{
    int fd = fcntl(u->root, F_DUPFD_CLOEXEC, 0);

    for (size_t i = 1; fd >= 0 && i < u->depth; i++) {
        int next = disk_usage_open_folder(fd, disk_usage_name_of(u, i));
        struct stat st;

        if (next < 0 || fstat(next, &st) != 0 || st.st_ino != u->levels[i].ino || st.st_dev != u->dev) {
            if (next >= 0)
                close(next);
            disk_usage_drop_from(u, u->levels[i].name);
            u->depth = i;
            break;
        }
        close(fd);
        fd = next;
    }
    return fd >= 0 && disk_usage_stand_in(u, fd, true);
}

/* To the parent folder. ".." leads elsewhere if the current folder was moved. */
static bool disk_usage_go_up(struct disk_usage *u)
{
    int fd = disk_usage_open_folder(dirfd(u->dir), "..");
    struct stat st;

    disk_usage_drop_from(u, u->levels[--u->depth].name);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == u->dev && st.st_ino == u->levels[u->depth - 1].ino)
        return disk_usage_stand_in(u, fd, true);
    if (fd >= 0)
        close(fd);
    return walk_back(u);
}

/* Enters the last remaining subfolder of the current folder. */
static void disk_usage_go_down(struct disk_usage *u)
{
    size_t at = u->names.n - 1; /* its NUL */
    struct statx sx;
    int fd;

    while (at > 0 && u->names.p[at - 1] != '\0')
        at--;
    fd = disk_usage_open_folder(dirfd(u->dir), u->names.p + at);
    if (fd >= 0 && disk_usage_look(fd, "", AT_EMPTY_PATH, &sx) && same_mount(u, &sx) &&
        disk_usage_push(u, sx.stx_ino, at)) {
        if (disk_usage_stand_in(u, fd, false))
            return;
        u->depth--;
        u->sum.partial = true;
    } else if (fd >= 0) {
        u->sum.partial = u->sum.partial || u->depth == DEPTH_MAX;
        close(fd);
        /* removed or replaced in the meantime */
    } else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
        u->sum.partial = true;
    }
    disk_usage_drop_from(u, at);
}

static void count_entry(struct disk_usage *u, const char *name)
{
    struct statx sx;

    if (!disk_usage_look(dirfd(u->dir), name, 0, &sx)) {
        u->sum.partial = u->sum.partial || errno != ENOENT;
        return;
    }
    if (!same_mount(u, &sx))
        return;
    if (!S_ISDIR(sx.stx_mode) && sx.stx_nlink > 1) {
        count_linked(u, &sx);
        return;
    }
    u->sum.bytes += sx.stx_blocks * 512;
    u->sum.inodes++;
    if (!S_ISDIR(sx.stx_mode))
        return;
    if (u->names.n + strlen(name) + 1 >= u->names.max)
        u->sum.partial = true;
    else
        buf_add(&u->names, name, strlen(name) + 1);
}

static bool disk_usage_is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* One entry, or one level up or down. */
static void disk_usage_step(struct disk_usage *u)
{
    struct dirent *d;

    if (!u->listed) {
        errno = 0;
        d = readdir(u->dir);
        if (d != NULL && !disk_usage_is_dot(d->d_name))
            count_entry(u, d->d_name);
        if (d == NULL) {
            u->sum.partial = u->sum.partial || errno != 0;
            u->listed = true;
        }
        return;
    }
    if (u->names.n > first_to_do(u)) {
        disk_usage_go_down(u);
        return;
    }
    if (u->depth == 1) {
        u->over = true;
    } else if (!disk_usage_go_up(u)) {
        u->over = u->sum.partial = true;
    }
}

/* ---- a scan ---- */

enum err_code disk_usage_begin(struct disk_usage **ret, const char *path, struct err *e)
{
    scoped(disk_usage_free) struct disk_usage *u = calloc(1, sizeof(*u));
    struct statx sx;
    int fd;

    if (u == NULL)
        return err_nomem(e);
    u->names = (struct buf)BUF_INIT(NAMES_MAX);
    u->links_max = LINKS_MAX;
    u->root = disk_usage_open_folder(AT_FDCWD, path);
    if (u->root < 0 || !disk_usage_look(u->root, "", AT_EMPTY_PATH, &sx))
        return err_sys(e, errno, "measure %s", path);
    u->dev = makedev(sx.stx_dev_major, sx.stx_dev_minor);
    u->sum = (struct disk_usage_sum){ .bytes = sx.stx_blocks * 512, .inodes = 1 };
    fd = disk_usage_open_folder(u->root, ".");
    if (fd < 0 || !disk_usage_push(u, sx.stx_ino, 0) || !disk_usage_stand_in(u, fd, false))
        return err_sys(e, errno, "measure %s", path);
    *ret = take_ptr(&u);
    return ERR_OK;
}

static uint64_t disk_usage_cpu_time_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool disk_usage_go_on(struct disk_usage *u, uint64_t cpu_ns)
{
    uint64_t until = disk_usage_cpu_time_ns() + cpu_ns;

    do {
        for (unsigned i = 0; i < LOOK_AT_CLOCK && !u->over; i++)
            disk_usage_step(u);
    } while (!u->over && disk_usage_cpu_time_ns() < until);
    return u->over;
}

struct disk_usage_sum disk_usage_sum(const struct disk_usage *u)
{
    struct disk_usage_sum sum = u->sum;

    sum.partial = sum.partial || u->names.failed; /* out of memory */
    return sum;
}

void disk_usage_set_bounds(struct disk_usage *u, size_t names_max, size_t links_max)
{
    u->names.max = names_max;
    u->links_max = links_max;
}

void disk_usage_free(struct disk_usage *u)
{
    if (u == NULL)
        return;
    if (u->dir != NULL)
        closedir(u->dir);
    if (u->root >= 0)
        close(u->root);
    buf_done(&u->names);
    free(u->levels);
    free(u->links);
    free(u);
}
