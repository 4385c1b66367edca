/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/watches.h"

#include "base/buf.h"
#include "base/files/fs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WATCHES_READS_A_TURN = 16,
    WATCHES_EVENTS_SIZE = 16 * 1024,
    /* Polled folders with more entries than this are always reported as changed. */
    WATCHES_COMPARED_MAX = 4096,
};

struct watch_one {
    LIST_ENTRY(watch_one) link;
    UT_hash_handle hh; /* by kernel_wd, while the kernel watches it */
    int wd;            /* the set's */
    int kernel_wd;     /* -1: polled */
    uint32_t mask;
    dev_t dev; /* if polled */
    ino_t ino;
    uint64_t seen; /* digest of a polled folder */
    bool gone;     /* removed during an event; freed after it */
    char path[];
};

struct watch_set {
    LIST_ENTRY(watch_set) link;
    struct watches *all;
    watch_fn fn;
    void *arg;
    int last_wd;
    bool closed; /* closed during an event; freed after it */
    LIST_HEAD(, watch_one) ones;
    struct watch_one *watched; /* those that the kernel watches: a node of 1,000 pods has 3,000 */
};

struct watches {
    uv_loop_t *loop;
    int fd; /* -1: none */
    uv_poll_t poll;
    bool poll_open;
    uv_timer_t timer;
    int open_handles;
    size_t n_polled;
    int why; /* the errno because of which the last path is polled */
    unsigned busy;
    bool forced, warned, closing;
    bool unswept; /* something is gone or closed */
    LIST_HEAD(, watch_set) sets;
};

/* ---- the instance ---- */

static void watches_on_closed(uv_handle_t *handle)
{
    struct watches *w = handle->data;

    if (--w->open_handles == 0 && w->closing)
        free(w);
}

static void watches_on_poll_closed(uv_handle_t *handle)
{
    struct watches *w = handle->data;

    w->poll_open = false;
    watches_on_closed(handle);
}

static void watches_on_readable(uv_poll_t *poll, int status, int events);

/* Returns whether there is an instance. */
static bool watches_instance(struct watches *w)
{
    int status;

    if (w->fd >= 0)
        return true;
    if (w->forced || w->poll_open) {
        w->why = EMFILE;
        return false;
    }
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->fd < 0) {
        w->why = errno;
        return false;
    }
    status = uv_poll_init(w->loop, &w->poll, w->fd);
    if (status != 0) {
        close(take_fd(&w->fd));
        w->why = -status;
        return false;
    }
    w->poll.data = w;
    w->poll_open = true;
    w->open_handles++;
    uv_poll_start(&w->poll, UV_READABLE, watches_on_readable);
    return true;
}

static void watches_drop_instance(struct watches *w)
{
    if (w->fd < 0)
        return;
    uv_close((uv_handle_t *)&w->poll, watches_on_poll_closed);
    close(take_fd(&w->fd));
}

/* ---- sweeping ---- */

static void watches_close(struct watches *w)
{
    w->closing = true;
    if (w->loop->data == w)
        w->loop->data = NULL;
    watches_drop_instance(w);
    uv_close((uv_handle_t *)&w->timer, watches_on_closed);
}

/* One a set. */
static struct watch_one *watches_by_kernel_wd(const struct watch_set *s, int kernel_wd)
{
    struct watch_one *one;

    HASH_FIND_INT(s->watched, &kernel_wd, one);
    return one;
}

static bool watches_kernel_wd_used(const struct watches *w, int kernel_wd)
{
    const struct watch_set *s;

    LIST_FOREACH (s, &w->sets, link)
        if (watches_by_kernel_wd(s, kernel_wd) != NULL)
            return true;
    return false;
}

/* False: out of memory, it is not watched. */
static bool watches_set_kernel_wd(struct watch_set *s, struct watch_one *one, int kernel_wd)
{
    one->kernel_wd = kernel_wd;
    HASH_ADD_INT(s->watched, kernel_wd, one);
    if (one->hh.tbl != NULL)
        return true;
    one->kernel_wd = -1;
    return false;
}

static void watches_forget(struct watch_set *s, struct watch_one *one)
{
    struct watches *w = s->all;

    if (one->gone)
        return;
    one->gone = w->unswept = true;
    if (one->kernel_wd < 0) {
        w->n_polled--;
        return;
    }
    HASH_DEL(s->watched, one);
    if (!watches_kernel_wd_used(w, one->kernel_wd))
        inotify_rm_watch(w->fd, one->kernel_wd);
}

/* Nothing is freed during a callback, which may remove and close. */
static void watches_sweep(struct watches *w)
{
    struct watch_set *s, *next_set;
    struct watch_one *one, *next;

    if (w->busy > 0 || !w->unswept)
        return;
    w->unswept = false;
    for (s = LIST_FIRST(&w->sets); s != NULL; s = next_set) {
        next_set = LIST_NEXT(s, link);
        for (one = LIST_FIRST(&s->ones); one != NULL; one = next) {
            next = LIST_NEXT(one, link);
            if (!one->gone)
                continue;
            LIST_REMOVE(one, link);
            free(one);
        }
        if (s->closed) {
            LIST_REMOVE(s, link);
            free(s);
        }
    }
    if (LIST_EMPTY(&w->sets) && !w->closing)
        watches_close(w);
}

/* ---- polling ---- */

struct watches_digest {
    int dir;
    size_t n;
    uint64_t sum;
};

static uint64_t watches_mix(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3ULL; /* FNV-1a: detects changes, not attacks */
    return h;
}

static bool watches_digest_entry(const char *name, void *arg)
{
    struct watches_digest *d = arg;
    struct stat st;
    uint64_t h = watches_mix(0xcbf29ce484222325ULL, name, strlen(name));

    if (++d->n > WATCHES_COMPARED_MAX)
        return false;
    if (fstatat(d->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        h = watches_mix(h, &st.st_ino, sizeof(st.st_ino));
        h = watches_mix(h, &st.st_mode, sizeof(st.st_mode));
        h = watches_mix(h, &st.st_size, sizeof(st.st_size));
        h = watches_mix(h, &st.st_mtim, sizeof(st.st_mtim));
        h = watches_mix(h, &st.st_ctim, sizeof(st.st_ctim));
    }
    d->sum += h; /* in any order */
    return true;
}

/* False: unknown or too many entries, so something may have changed. */
static bool watches_digest(const char *path, uint64_t *ret)
{
    fd_auto dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    struct watches_digest d = { .dir = dir };
    struct err e = { 0 };
    struct presence listed;

    if (dir < 0)
        return false;
    listed = fs_list(dir, ".", watches_digest_entry, &d, &e);
    if (presence_is_unknown(listed) || presence_is_absent(listed) || d.n > WATCHES_COMPARED_MAX)
        return false;
    *ret = d.sum;
    return true;
}

/* The mask to report for a polled path; 0 if unchanged. */
static uint32_t watches_look(struct watch_one *one)
{
    struct stat st;
    uint64_t sum;

    if (stat(one->path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR ? IN_IGNORED : 0;
    if (st.st_dev != one->dev || st.st_ino != one->ino)
        return IN_IGNORED;
    if (!S_ISDIR(st.st_mode))
        return IN_MODIFY;
    if (!watches_digest(one->path, &sum))
        return IN_Q_OVERFLOW;
    if (sum == one->seen)
        return 0;
    one->seen = sum;
    return IN_Q_OVERFLOW;
}

/* Returns true when the kernel watches it from now on. */
static bool watches_arm(struct watch_set *s, struct watch_one *one)
{
    struct watches *w = s->all;
    int wd = watches_instance(w) ? inotify_add_watch(w->fd, one->path, one->mask | IN_MASK_ADD) : -1;

    if (wd < 0 || watches_by_kernel_wd(s, wd) != NULL || !watches_set_kernel_wd(s, one, wd))
        return false;
    w->n_polled--;
    return true;
}

static void watches_tell(struct watch_set *s, struct watch_one *one, uint32_t mask, const char *name)
{
    int wd = one != NULL ? one->wd : -1;

    if (s->closed)
        return;
    if (one != NULL && (mask & IN_IGNORED) != 0)
        watches_forget(s, one);
    s->fn(wd, mask, name, s->arg);
}

static void watches_poll_set(struct watch_set *s)
{
    struct watch_one *one;
    bool overflow = false;

    LIST_FOREACH (one, &s->ones, link) {
        uint32_t mask;

        if (one->gone || one->kernel_wd >= 0)
            continue;
        mask = watches_look(one);
        if (mask == IN_IGNORED)
            watches_tell(s, one, IN_IGNORED, "");
        else if (watches_arm(s, one) || mask == IN_Q_OVERFLOW)
            overflow = true;
        else if (mask != 0)
            watches_tell(s, one, mask, "");
    }
    if (overflow)
        watches_tell(s, NULL, IN_Q_OVERFLOW, "");
}

static void watches_on_timer(uv_timer_t *timer)
{
    struct watches *w = timer->data;
    struct watch_set *s;

    w->busy++;
    LIST_FOREACH (s, &w->sets, link)
        watches_poll_set(s);
    w->busy--;
    if (w->n_polled == 0 && w->warned) {
        w->warned = false;
        log_info("inotify is available again; polling stopped");
    }
    if (w->n_polled == 0)
        uv_timer_stop(&w->timer);
    watches_sweep(w);
}

static void watches_begin_poll(struct watches *w)
{
    w->n_polled++;
    if (!w->warned)
        log_warn("inotify cannot watch all paths; polling them every second",
                 F_STR("limit",
                       w->why == ENOSPC ? "fs.inotify.max_user_watches" : "fs.inotify.max_user_instances"),
                 F_STR("err", strerror(w->why)));
    w->warned = true;
    if (!uv_is_active((uv_handle_t *)&w->timer))
        uv_timer_start(&w->timer, watches_on_timer, WATCHES_POLL_MS, WATCHES_POLL_MS);
}

static void watches_poll_all(struct watches *w, int why)
{
    struct watch_set *s;
    struct watch_one *one;

    watches_drop_instance(w);
    w->why = why;
    LIST_FOREACH (s, &w->sets, link)
        LIST_FOREACH (one, &s->ones, link) {
            if (one->gone || one->kernel_wd < 0)
                continue;
            HASH_DEL(s->watched, one);
            one->kernel_wd = -1;
            watches_begin_poll(w);
        }
}

/* ---- events ---- */

static void watches_dispatch(struct watches *w, const struct inotify_event *event)
{
    /* These are reported regardless of the mask. */
    const uint32_t always = IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW;
    const char *name = event->len > 0 ? event->name : "";
    struct watch_set *s;
    struct watch_one *one;

    LIST_FOREACH (s, &w->sets, link) {
        if ((event->mask & IN_Q_OVERFLOW) != 0) {
            watches_tell(s, NULL, IN_Q_OVERFLOW, "");
            continue;
        }
        one = watches_by_kernel_wd(s, event->wd);
        if (one != NULL && (event->mask & (one->mask | always)) != 0)
            watches_tell(s, one, event->mask, name);
    }
}

static void watches_on_readable(uv_poll_t *poll, int status, int events)
{
    char bytes[WATCHES_EVENTS_SIZE] __attribute__((aligned(__alignof__(struct inotify_event))));
    struct watches *w = poll->data;

    (void)events;
    if (status < 0) { /* libuv no longer calls us */
        watches_poll_all(w, -status);
        return;
    }
    w->busy++;
    for (int i = 0; i < WATCHES_READS_A_TURN && w->fd >= 0; i++) {
        ssize_t n = read(w->fd, bytes, sizeof(bytes));
        const struct inotify_event *event;

        if (n < 0 && errno != EAGAIN && errno != EINTR)
            watches_poll_all(w, errno); /* it stays readable: the loop would call us endlessly */
        if (n <= 0)
            break;
        for (char *p = bytes; p < bytes + n && w->fd >= 0; p += sizeof(*event) + event->len) {
            event = (const struct inotify_event *)(const void *)p;
            watches_dispatch(w, event);
        }
    }
    w->busy--;
    watches_sweep(w);
}

/* ---- sets ---- */

static struct watches *watches_of(uv_loop_t *loop)
{
    struct watches *w = loop->data;

    if (w != NULL)
        return w;
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->loop = loop;
    w->fd = -1;
    LIST_INIT(&w->sets);
    uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    w->open_handles = 1;
    loop->data = w;
    return w;
}

enum err_code watch_set_open(struct watch_set **ret, uv_loop_t *loop, watch_fn fn, void *arg, struct err *e)
{
    struct watch_set *s = calloc(1, sizeof(*s));
    struct watches *w = s != NULL ? watches_of(loop) : NULL;

    if (w == NULL) {
        free(s);
        return err_nomem(e);
    }
    s->all = w;
    s->fn = fn;
    s->arg = arg;
    LIST_INIT(&s->ones);
    LIST_INSERT_HEAD(&w->sets, s, link);
    *ret = s;
    return ERR_OK;
}

/* By the kernel's number, or by the inode if one of them is polled. */
static struct watch_one *watches_find(struct watch_set *s, int kernel_wd, const struct stat *st)
{
    struct watch_one *one = watches_by_kernel_wd(s, kernel_wd);

    if (one != NULL || s->all->n_polled == 0)
        return one;
    LIST_FOREACH (one, &s->ones, link)
        if (!one->gone && one->kernel_wd < 0 && one->dev == st->st_dev && one->ino == st->st_ino)
            return one;
    return NULL;
}

int watch_set_add(struct watch_set *s, const char *path, uint32_t mask)
{
    struct watches *w = s->all;
    struct watch_one *one;
    struct stat st;
    int kernel_wd = -1;

    if (watches_instance(w)) {
        kernel_wd = inotify_add_watch(w->fd, path, mask | IN_MASK_ADD);
        if (kernel_wd < 0 && errno != ENOSPC && errno != ENOMEM)
            return -1;
        if (kernel_wd < 0)
            w->why = errno;
    }
    if (stat(path, &st) != 0) { /* removed in the meantime */
        int sys = errno;

        if (kernel_wd >= 0 && !watches_kernel_wd_used(w, kernel_wd))
            inotify_rm_watch(w->fd, kernel_wd);
        errno = sys;
        return -1;
    }
    if ((mask & IN_ONLYDIR) != 0 && !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    one = watches_find(s, kernel_wd, &st);
    if (one != NULL) {
        one->mask |= mask;
        if (kernel_wd >= 0 && one->kernel_wd < 0 && watches_set_kernel_wd(s, one, kernel_wd))
            w->n_polled--;
        return one->wd;
    }
    one = calloc(1, sizeof(*one) + strlen(path) + 1);
    if (one != NULL)
        one->kernel_wd = -1;
    if (one == NULL || (kernel_wd >= 0 && !watches_set_kernel_wd(s, one, kernel_wd))) {
        free(one);
        if (kernel_wd >= 0 && !watches_kernel_wd_used(w, kernel_wd))
            inotify_rm_watch(w->fd, kernel_wd);
        errno = ENOMEM;
        return -1;
    }
    one->wd = ++s->last_wd;
    one->mask = mask;
    one->dev = st.st_dev;
    one->ino = st.st_ino;
    strcpy(one->path, path);
    LIST_INSERT_HEAD(&s->ones, one, link);
    if (kernel_wd < 0) {
        if (S_ISDIR(st.st_mode) && !watches_digest(path, &one->seen))
            one->seen = 0;
        watches_begin_poll(w);
    }
    return one->wd;
}

void watch_set_remove(struct watch_set *s, int wd)
{
    struct watch_one *one;

    LIST_FOREACH (one, &s->ones, link)
        if (!one->gone && one->wd == wd) {
            watches_forget(s, one);
            break;
        }
    watches_sweep(s->all);
}

void watch_set_close(struct watch_set *s)
{
    struct watch_one *one;

    if (s == NULL)
        return;
    s->closed = s->all->unswept = true;
    LIST_FOREACH (one, &s->ones, link)
        watches_forget(s, one);
    watches_sweep(s->all);
}

size_t watches_polled(const uv_loop_t *loop, char *ret_why, size_t size)
{
    const struct watches *w = loop->data;

    if (w == NULL || w->n_polled == 0)
        return 0;
    snprintf(ret_why, size, "%s (%s)",
             w->why == ENOSPC ? "fs.inotify.max_user_watches" : "fs.inotify.max_user_instances",
             strerror(w->why));
    return w->n_polled;
}

void watches_force_poll(uv_loop_t *loop, bool on)
{
    struct watches *w = watches_of(loop);

    if (w == NULL)
        return;
    w->forced = on;
    if (!on || w->fd < 0)
        return;
    watches_poll_all(w, EMFILE);
}
