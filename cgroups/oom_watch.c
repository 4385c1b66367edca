/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroups/oom_watch.h"

#include "base/files/fs.h"
#include "base/files/watches.h"
#include "base/list.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#define EVENTS_AT_ONCE 64

struct watched {
    UT_hash_handle hh; /* by path */
    int wd;            /* v2 */
    int event;         /* v1: an eventfd; -1 */
    uint64_t counted;
    bool touched;
    bool again; /* it had an event without a kill: the next call with `again` looks, too */
    char path[];
};

struct cg_oom_watch {
    struct cg_tree *tree;
    const struct cg_hier *hier; /* the hierarchy with the memory controller */
    int fd; /* v1: an epoll of the eventfds, which tells which cgroup it is; v2: an eventfd, incremented by
             * our own watches */
    struct watch_set *files; /* v2 */
    struct watched *all;
};

static const struct cg_hier *memory_hier(const struct cg_tree *t)
{
    for (size_t i = 0; i < t->n_hiers; i++)
        if (t->hiers[i].controllers & CG_CTL_MEMORY)
            return &t->hiers[i];
    return NULL;
}

static void touch(struct cg_oom_watch *w, int wd)
{
    struct watched *one, *tmp;

    HASH_ITER (hh, w->all, one, tmp)
        if (wd < 0 || one->wd == wd)
            one->touched = true;
}

static void oom_watch_on_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct cg_oom_watch *w = arg;
    const uint64_t one = 1;

    (void)name;
    touch(w, mask & IN_Q_OVERFLOW ? -1 : wd);
    ERR_IGNORE(write(w->fd, &one, sizeof(one)));
}

enum err_code cg_oom_watch_open(struct cg_oom_watch **ret, struct cg_tree *t, uv_loop_t *loop, struct err *e)
{
    const struct cg_hier *h = memory_hier(t);
    struct cg_oom_watch *w;

    if (h == NULL)
        return err_set(e, ERR_PRECONDITION, "no cgroup hierarchy has the memory controller");
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return err_nomem(e);
    w->tree = t;
    w->hier = h;
    w->fd = h->backend->v2 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : epoll_create1(EPOLL_CLOEXEC);
    if (w->fd < 0)
        err_sys(e, errno, "create an eventfd");
    else if (h->backend->v2 && watch_set_open(&w->files, loop, oom_watch_on_event, w, e) != ERR_OK)
        close(w->fd);
    if (e->code != ERR_OK) {
        free(w);
        return e->code;
    }
    *ret = w;
    return ERR_OK;
}

/* A child that is being created may still hold the eventfd, so closing it alone would leave it in the epoll.
 */
static void end_event(struct cg_oom_watch *w, struct watched *one)
{
    if (one->event >= 0)
        epoll_ctl(w->fd, EPOLL_CTL_DEL, one->event, NULL);
    scope_close_p(&one->event);
}

static void oom_watch_drop(struct cg_oom_watch *w, struct watched *one)
{
    HASH_DEL(w->all, one);
    end_event(w, one);
    free(one);
}

void cg_oom_watch_close(struct cg_oom_watch *w)
{
    struct watched *one, *tmp;

    if (w == NULL)
        return;
    HASH_ITER (hh, w->all, one, tmp)
        oom_watch_drop(w, one);
    watch_set_close(w->files);
    close(w->fd);
    free(w);
}

int cg_oom_watch_fd(const struct cg_oom_watch *w)
{
    return w->fd;
}

/* ---- watched cgroups ---- */

/* v1: "<eventfd> <descriptor of memory.oom_control>"; the kernel keeps a reference to the eventfd only, and
 * forgets it when we close it. An eventfd for all cgroups would not tell which one it is, and the removal of
 * a cgroup is an event, too: each would cost a look at the counters of all. */
static enum err_code register_v1(struct cg_oom_watch *w, struct watched *one, struct err *e)
{
    fd_auto dir = cg_open_dir(w->hier, one->path);
    fd_auto control = dir >= 0 ? openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC) : -1;
    struct epoll_event wanted = { .events = EPOLLIN, .data.ptr = one };
    char text[32];

    if (control < 0)
        return err_sys(e, errno, "open memory.oom_control of cgroup %s", one->path);
    one->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (one->event < 0 || epoll_ctl(w->fd, EPOLL_CTL_ADD, one->event, &wanted) != 0)
        return err_sys(e, errno, "make an eventfd");
    snprintf(text, sizeof(text), "%d %d", one->event, control);
    return fs_write_control(dir, "cgroup.event_control", text, e);
}

static enum err_code register_v2(struct cg_oom_watch *w, struct watched *one, struct err *e)
{
    char file[CG_PATH_MAX + 64];

    /* The path starts at our descriptor of the mount point, so that tests can use a scratch folder. */
    snprintf(file, sizeof(file), "/proc/self/fd/%d%s/memory.events", w->hier->fd, one->path);
    one->wd = watch_set_add(w->files, file, IN_MODIFY);
    return one->wd >= 0 ? ERR_OK : err_sys(e, errno, "watch memory.events of cgroup %s", one->path);
}

enum err_code cg_oom_watch_add(struct cg_oom_watch *w, const char *path, uint64_t counted, struct err *e)
{
    size_t n = strlen(path);
    struct watched *one;

    HASH_FIND(hh, w->all, path, n, one);
    if (one != NULL)
        return err_set(e, ERR_EXISTS, "cgroup %s is being watched", path);
    if (path[0] != '/' || n >= CG_PATH_MAX || !fs_path_is_safe(path + 1))
        return err_set(e, ERR_INVALID, "watch cgroup \"%.200s\": not an absolute path", path);
    one = calloc(1, sizeof(*one) + n + 1);
    if (one == NULL)
        return err_nomem(e);
    memcpy(one->path, path, n + 1);
    one->counted = counted;
    one->wd = one->event = -1;
    if ((w->hier->backend->v2 ? register_v2 : register_v1)(w, one, e) == ERR_OK) {
        HASH_ADD(hh, w->all, path[0], n, one);
        if (one->hh.tbl != NULL)
            return ERR_OK;
        err_nomem(e);
    }
    end_event(w, one);
    free(one);
    return e->code;
}

void cg_oom_watch_remove(struct cg_oom_watch *w, const char *path)
{
    struct watched *one;

    HASH_FIND(hh, w->all, path, strlen(path), one);
    if (one == NULL)
        return;
    if (one->wd >= 0)
        watch_set_remove(w->files, one->wd);
    oom_watch_drop(w, one);
}

/* ---- events ---- */

struct presence cg_read_oom_kills(struct cg_tree *t, const char *path, bool below, uint64_t *ret,
                                  struct err *e)
{
    const struct cg_hier *h = memory_hier(t);
    fd_auto dir = h != NULL ? cg_open_dir(h, path) : -1;
    struct presence local = presence_absent();

    if (h == NULL)
        return presence_absent();
    if (dir < 0) {
        err_sys(e, errno, "open cgroup %s", path);
        return presence_from_err(e);
    }
    if (!h->backend->v2)
        return cg_read_key(dir, "memory.oom_control", "oom_kill", ret, e);
    if (!below)
        local = cg_read_key(dir, "memory.events.local", "oom_kill", ret, e);
    if (!presence_is_absent(local))
        return local;
    return cg_read_key(dir, "memory.events", "oom_kill", ret, e);
}

static void oom_watch_drain(struct cg_oom_watch *w)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    uint64_t count;
    int n;

    if (w->hier->backend->v2) {
        ERR_IGNORE(read(w->fd, &count, sizeof(count)));
        return;
    }
    do {
        n = epoll_wait(w->fd, events, EVENTS_AT_ONCE, 0);
        for (int i = 0; i < n; i++) {
            struct watched *one = events[i].data.ptr;

            ERR_IGNORE(read(one->event, &count, sizeof(count)));
            one->touched = true;
        }
    } while (n == EVENTS_AT_ONCE);
}

/* If the count cannot be read, the cgroup stays marked and the next call tries again. */
static enum err_code oom_watch_take(struct cg_oom_watch *w, struct watched *one, uint64_t *ret, struct err *e)
{
    uint64_t kills = one->counted;

    one->touched = presence_is_unknown(cg_read_oom_kills(w->tree, one->path, true, &kills, e));
    if (one->touched)
        return e->code;
    *ret = kills > one->counted ? kills - one->counted : 0;
    one->counted += *ret;
    return ERR_OK;
}

enum err_code cg_oom_watch_take(struct cg_oom_watch *w, const char *path, uint64_t *ret, struct err *e)
{
    struct watched *one;

    HASH_FIND(hh, w->all, path, strlen(path), one);
    if (one != NULL)
        return oom_watch_take(w, one, ret, e);
    *ret = 0;
    return ERR_OK;
}

bool cg_oom_watch_read(struct cg_oom_watch *w, bool again,
                       void (*fn)(const char *path, uint64_t kills, void *arg), void *arg, size_t *ret_found)
{
    struct watched *one, *tmp;
    bool complete = true;

    *ret_found = 0;
    oom_watch_drain(w);
    HASH_ITER (hh, w->all, one, tmp) {
        uint64_t kills = 0;
        struct err e = { 0 };
        bool touched = one->touched;

        if (!touched && !(again && one->again))
            continue;
        complete = oom_watch_take(w, one, &kills, &e) == ERR_OK && complete;
        one->again = touched && kills == 0;
        if (kills == 0)
            continue;
        ++*ret_found;
        fn(one->path, kills, arg);
    }
    return complete;
}
