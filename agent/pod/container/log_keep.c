/* SPDX-License-Identifier: Apache-2.0 */
/* The thread: what it is told, what inotify and leases say; what is done with files: log_turn.c. */
#include "agent/pod/container/log_keep.h"

#include "agent/pod/container/log_turn.h"
#include "base/list.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/thread.h"
#include "base/work.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { STACK = 256 * 1024, SIGNALS_AT_ONCE = 16, POLL_MS = 200 /* without inotify */ };

struct order {
    enum { ORDER_BEGIN, ORDER_END, ORDER_REMOVE } what;
    STAILQ_ENTRY(order) link;
    char path[];
};

struct kept {
    struct log_turn turn;
    int wd; /* of its folder, which others may share */
    LIST_ENTRY(kept) link;
};

struct log_keep {
    pthread_t thread;
    unsigned max_files;
    int wake;
    pthread_mutex_t lock; /* of the two below */
    STAILQ_HEAD(, order) orders;
    bool closing;

    /* the thread's */
    int inotify, signals; /* inotify is -1 where no instance is to be had */
    LIST_HEAD(, kept) kept;
};

/* ---- orders ---------------------------------------------------------------------------------- */

static struct kept *log_keep_find(struct log_keep *k, const char *path)
{
    struct kept *one;

    LIST_FOREACH (one, &k->kept, link)
        if (strcmp(one->turn.path, path) == 0)
            return one;
    return NULL;
}

static void log_keep_forget(struct log_keep *k, struct kept *one)
{
    struct kept *other;

    LIST_REMOVE(one, link);
    LIST_FOREACH (other, &k->kept, link)
        if (other->wd == one->wd)
            break;
    if (other == NULL && one->wd >= 0 && k->inotify >= 0)
        inotify_rm_watch(k->inotify, one->wd);
    log_turn_done(&one->turn);
    free(one);
}

static int log_keep_watch_folder(struct log_keep *k, const struct kept *one)
{
    return inotify_add_watch(k->inotify, one->turn.folder, IN_MOVED_TO | IN_CREATE | IN_ONLYDIR);
}

static void pod_log_keep_begin(struct log_keep *k, const char *path)
{
    struct kept *one = log_keep_find(k, path);
    struct err e = { 0 };

    if (one == NULL) {
        one = calloc(1, sizeof(*one));
        if (one == NULL || log_turn_init(&one->turn, path, k->max_files, &e) != ERR_OK) {
            log_warn("a container's log is not kept when it is rotated", F_STR("path", path), F_ERR(&e));
            free(one);
            return;
        }
        one->wd = log_keep_watch_folder(k, one);
        if (one->wd < 0 && k->inotify >= 0)
            log_warn("a log's folder cannot be watched; files may be lost when it is rotated",
                     F_STR("path", path), F_STR("err", strerror(errno)));
        LIST_INSERT_HEAD(&k->kept, one, link);
    }
    log_turn_look(&one->turn);
}

static void carry_out(struct log_keep *k, const struct order *o)
{
    struct kept *one;

    switch (o->what) {
    case ORDER_BEGIN:
        pod_log_keep_begin(k, o->path);
        return;
    case ORDER_END:
    case ORDER_REMOVE:
        one = log_keep_find(k, o->path);
        if (one != NULL) {
            log_turn_end(&one->turn);
            log_keep_forget(k, one);
        }
        if (o->what == ORDER_REMOVE)
            log_turn_remove(o->path);
        return;
    }
}

static struct order *next_order(struct log_keep *k, bool *ret_closing)
{
    struct order *o;

    pthread_mutex_lock(&k->lock);
    o = STAILQ_FIRST(&k->orders);
    if (o != NULL)
        STAILQ_REMOVE_HEAD(&k->orders, link);
    *ret_closing = k->closing;
    pthread_mutex_unlock(&k->lock);
    return o;
}

/* False: it is time to end. */
static bool on_orders(struct log_keep *k)
{
    struct order *o;
    bool closing;
    uint64_t n;

    if (read(k->wake, &n, sizeof(n)) < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    while ((o = next_order(k, &closing)) != NULL) {
        carry_out(k, o);
        free(o);
    }
    return !closing;
}

static void give_order(struct log_keep *k, int what, const char *path)
{
    size_t n = strlen(path) + 1;
    struct order *o = k != NULL ? malloc(sizeof(*o) + n) : NULL;
    uint64_t one = 1;

    if (o == NULL)
        return;
    o->what = what;
    memcpy(o->path, path, n);
    pthread_mutex_lock(&k->lock);
    STAILQ_INSERT_TAIL(&k->orders, o, link);
    pthread_mutex_unlock(&k->lock);
    (void)!write(k->wake, &one, sizeof(one));
}

void log_keep_begin(struct log_keep *k, const char *path)
{
    give_order(k, ORDER_BEGIN, path);
}

void log_keep_end(struct log_keep *k, const char *path)
{
    give_order(k, ORDER_END, path);
}

void log_keep_remove(struct log_keep *k, const char *path)
{
    give_order(k, ORDER_REMOVE, path);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* More signals than the kernel queues become a SIGIO without a descriptor: then each is asked. */
static void on_signals(struct log_keep *k)
{
    struct signalfd_siginfo info[SIGNALS_AT_ONCE];
    ssize_t n = read(k->signals, info, sizeof(info));
    struct kept *one;

    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(*info); i++)
        LIST_FOREACH (one, &k->kept, link)
            if (info[i].ssi_signo == SIGIO || one->turn.lease == info[i].ssi_fd)
                log_turn_held(&one->turn);
}

static void on_inotify(struct log_keep *k)
{
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(k->inotify, bytes, sizeof(bytes));
    const struct inotify_event *event;
    struct kept *one, *after;

    for (ssize_t at = 0; at + (ssize_t)sizeof(*event) <= n; at += (ssize_t)(sizeof(*event) + event->len)) {
        event = (const struct inotify_event *)(bytes + at);
        for (one = LIST_FIRST(&k->kept); one != NULL; one = after) {
            after = LIST_NEXT(one, link);
            if (event->wd == one->wd && (event->mask & IN_IGNORED) != 0)
                log_keep_forget(k, one); /* the folder is gone, with its pod */
            else if ((event->mask & IN_Q_OVERFLOW) != 0 ||
                     (event->wd == one->wd && event->len > 0 && strcmp(event->name, one->turn.base) == 0))
                log_turn_begun(&one->turn);
        }
    }
}

/*
 * The files that no event would tell of are looked at; a turn looks at what there is, so that one too many
 * does nothing.  An instance is tried for again.
 */
static void look_at_all(struct log_keep *k)
{
    struct kept *one;

    if (k->inotify < 0)
        k->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    LIST_FOREACH (one, &k->kept, link) {
        if (one->wd >= 0)
            continue;
        one->wd = log_keep_watch_folder(k, one);
        log_turn_look(&one->turn);
    }
}

static bool all_watched(const struct log_keep *k)
{
    const struct kept *one;

    LIST_FOREACH (one, &k->kept, link)
        if (one->wd < 0)
            return false;
    return true;
}

/*
 * Between a file and the next, conmon is ahead: it goes on writing while the one after it is made ready.  On
 * a machine with more to do than processors an ordinary thread waits for its turn longer than two files take
 * to be filled; this one runs for microseconds at a time.  Not allowed to: as good as can be.
 */
static void go_first(void)
{
    const struct sched_param lowest = { .sched_priority = 1 };

    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) != 0 &&
        setpriority(PRIO_PROCESS, (id_t)gettid(), -20) != 0)
        log_debug("the thread that keeps logs has no priority", F_STR("err", strerror(errno)));
}

static void *log_keep_run(void *arg)
{
    struct log_keep *k = arg;
    struct pollfd p[] = { { .fd = k->signals, .events = POLLIN },
                          { .fd = k->inotify, .events = POLLIN },
                          { .fd = k->wake, .events = POLLIN } };
    bool go_on = true;

    go_first();
    while (go_on) {
        p[1].fd = k->inotify; /* poll() leaves a negative one alone */
        if (poll(p, ARRAY_LEN(p), all_watched(k) ? -1 : POLL_MS) < 0)
            continue;
        work_job_begins();
        if (p[0].revents != 0) /* first: somebody is held */
            on_signals(k);
        if (p[1].revents != 0)
            on_inotify(k);
        if (p[2].revents != 0)
            go_on = on_orders(k);
        if (!all_watched(k))
            look_at_all(k);
        work_job_ends();
    }
    while (!LIST_EMPTY(&k->kept))
        log_keep_forget(k, LIST_FIRST(&k->kept));
    return NULL;
}

/* ---- its life -------------------------------------------------------------------------------- */

static enum err_code open_descriptors(struct log_keep *k, struct err *e)
{
    sigset_t lease;

    sigemptyset(&lease);
    sigaddset(&lease, LOG_LEASE_SIGNAL);
    sigaddset(&lease, SIGIO);
    k->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (k->inotify < 0)
        log_warn("inotify cannot watch logs; files may be lost when one that is written fast is rotated",
                 F_STR("limit", "fs.inotify.max_user_instances"), F_STR("err", strerror(errno)));
    k->signals = signalfd(-1, &lease, SFD_CLOEXEC | SFD_NONBLOCK);
    k->wake = k->signals >= 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    return k->wake >= 0 ? ERR_OK : err_sys(e, errno, "watch logs");
}

static void free_all(struct log_keep *k)
{
    struct order *o;

    while ((o = STAILQ_FIRST(&k->orders)) != NULL) {
        STAILQ_REMOVE_HEAD(&k->orders, link);
        free(o);
    }
    scope_close_p(&k->inotify);
    scope_close_p(&k->signals);
    scope_close_p(&k->wake);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

enum err_code log_keep_open(struct log_keep **ret, unsigned max_files, struct err *e)
{
    struct log_keep *k = calloc(1, sizeof(*k));
    int sys;

    *ret = NULL;
    if (k == NULL)
        return err_nomem(e);
    k->max_files = max_files;
    k->inotify = k->signals = k->wake = -1;
    STAILQ_INIT(&k->orders);
    LIST_INIT(&k->kept);
    pthread_mutex_init(&k->lock, NULL);
    if (open_descriptors(k, e) == ERR_OK &&
        (sys = thread_start(&k->thread, STACK, false, log_keep_run, k)) != 0)
        err_sys(e, sys, "start the thread that keeps logs");
    if (e->code != ERR_OK) {
        free_all(k);
        return e->code;
    }
    *ret = k;
    return ERR_OK;
}

void log_keep_close(struct log_keep *k)
{
    uint64_t one = 1;

    if (k == NULL)
        return;
    pthread_mutex_lock(&k->lock);
    k->closing = true;
    pthread_mutex_unlock(&k->lock);
    (void)!write(k->wake, &one, sizeof(one));
    pthread_join(k->thread, NULL);
    free_all(k);
}
