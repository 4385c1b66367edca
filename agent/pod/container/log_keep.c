/* SPDX-License-Identifier: Apache-2.0 */
/* The thread: its orders and the events of leases; the work on files is in log_turn.c. */
#include "agent/pod/container/log_keep.h"

#include "agent/pod/container/log_turn.h"
#include "base/files/watches.h"
#include "base/list.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/thread.h"
#include "base/work.h"

#include <errno.h>
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

/* conmon's next step follows within a moment: the file is looked for in steps from the first wait to the last
 * one. The loop's watch reports later events. */
enum {
    WAKE_TRIES = 3,
    STACK = 256 * 1024,
    SIGNALS_AT_ONCE = 16,
    WAIT_FIRST_NS = 20 * 1000,
    WAIT_START_NS =
        5 * 1000 * 1000, /* conmon has not begun: it takes longer, and the watch reports its file */
    WAIT_LAST_NS = 300 * 1000 * 1000
};

struct order {
    enum { ORDER_BEGIN, ORDER_END, ORDER_REMOVE } what;
    STAILQ_ENTRY(order) link;
    char path[];
};

struct kept {
    struct log_turn turn;
    uint64_t wait_ns;         /* for the next read; 0: an event will trigger it */
    uint64_t look_ns;         /* uv_hrtime() */
    LIST_ENTRY(kept) awaited; /* while wait_ns is not 0 */
    UT_hash_handle hh;        /* by turn.path */
};

struct watched {       /* the loop's */
    UT_hash_handle hh; /* by path */
    int wd;            /* of its folder, which may be shared */
    char path[];
};

struct log_keep {
    pthread_t thread;
    unsigned max_files;
    int wake;
    pthread_mutex_t lock; /* protects the next two */
    STAILQ_HEAD(, order) orders;
    bool closing;

    /* the loop's */
    struct watch_set *folders;
    struct watched *watched;

    /* the thread's */
    int signals;
    struct kept *kept;
    LIST_HEAD(, kept) awaited;
};

/* ---- orders ---- */

static struct kept *log_keep_find(struct log_keep *k, const char *path)
{
    struct kept *one;

    HASH_FIND(hh, k->kept, path, strlen(path), one);
    return one;
}

/* Logs that await nothing, which most do, cost the thread no look when it is woken for others. */
static void log_keep_await(struct log_keep *k, struct kept *one, uint64_t wait_ns)
{
    if (one->wait_ns != 0 && wait_ns == 0)
        LIST_REMOVE(one, awaited);
    if (one->wait_ns == 0 && wait_ns != 0)
        LIST_INSERT_HEAD(&k->awaited, one, awaited);
    one->wait_ns = wait_ns;
    one->look_ns = uv_hrtime() + wait_ns;
}

static void log_keep_forget(struct log_keep *k, struct kept *one)
{
    log_keep_await(k, one, 0);
    HASH_DEL(k->kept, one);
    log_turn_done(&one->turn);
    free(one);
}

static void log_keep_expect(struct log_keep *k, struct kept *one)
{
    const bool awaits = log_turn_awaits(&one->turn);

    log_keep_await(k, one, !awaits ? 0 : one->turn.let_go ? WAIT_FIRST_NS : WAIT_START_NS);
}

static void pod_log_keep_begin(struct log_keep *k, const char *path)
{
    struct kept *one = log_keep_find(k, path);
    struct err e = { 0 };

    if (one == NULL) {
        one = calloc(1, sizeof(*one));
        if (one == NULL || log_turn_init(&one->turn, path, k->max_files, &e) != ERR_OK) {
            log_warn("cannot keep rotated files of a container's log", F_STR("path", path), F_ERR(&e));
            free(one);
            return;
        }
        HASH_ADD_KEYPTR(hh, k->kept, one->turn.path, strlen(one->turn.path), one);
        if (one->hh.tbl == NULL) {
            log_turn_done(&one->turn);
            free(one);
            return;
        }
    }
    log_turn_look(&one->turn);
    log_keep_expect(k, one);
}

static void carry_out(struct log_keep *k, const struct order *o)
{
    struct kept *one = log_keep_find(k, o->path);

    switch (o->what) {
    case ORDER_BEGIN:
        pod_log_keep_begin(k, o->path);
        return;
    case ORDER_END:
    case ORDER_REMOVE:
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

/* False: the thread should end. */
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

/* The thread sleeps until it is woken: one write that fails must not leave an order to the next. */
static void log_keep_wake(struct log_keep *k)
{
    uint64_t one = 1;

    for (int i = 0; i < WAKE_TRIES && write(k->wake, &one, sizeof(one)) < 0; i++)
        ;
}

static void give_order(struct log_keep *k, int what, const char *path)
{
    size_t n = strlen(path) + 1;
    struct order *o = k != NULL ? malloc(sizeof(*o) + n) : NULL;

    if (o == NULL)
        return;
    o->what = what;
    memcpy(o->path, path, n);
    pthread_mutex_lock(&k->lock);
    STAILQ_INSERT_TAIL(&k->orders, o, link);
    pthread_mutex_unlock(&k->lock);
    log_keep_wake(k);
}

/* ---- the loop's watch ---- */

static struct watched *log_keep_watched(struct log_keep *k, const char *path)
{
    struct watched *w;

    HASH_FIND(hh, k->watched, path, strlen(path), w);
    return w;
}

static void log_keep_watch(struct log_keep *k, const char *path)
{
    const size_t n = strlen(path) + 1;
    struct watched *w = log_keep_watched(k, path) == NULL ? malloc(sizeof(*w) + n) : NULL;
    char *slash;

    if (w == NULL)
        return;
    memcpy(w->path, path, n);
    slash = strrchr(w->path, '/');
    if (slash != NULL)
        *slash = '\0';
    w->wd = watch_set_add(k->folders, w->path, IN_MOVED_TO | IN_CREATE | IN_ONLYDIR);
    if (slash != NULL)
        *slash = '/';
    if (w->wd < 0) {
        log_warn("cannot watch a log's folder; files may be lost when it is rotated", F_STR("path", path),
                 F_STR("err", strerror(errno)));
        free(w);
        return;
    }
    HASH_ADD(hh, k->watched, path[0], n - 1, w);
    if (w->hh.tbl == NULL) /* the watch of the folder stays, and does nothing */
        free(w);
}

static void log_keep_unwatch(struct log_keep *k, const char *path)
{
    struct watched *w = log_keep_watched(k, path), *other, *next;

    if (w == NULL)
        return;
    HASH_DEL(k->watched, w);
    HASH_ITER (hh, k->watched, other, next)
        if (other->wd == w->wd)
            break;
    if (other == NULL)
        watch_set_remove(k->folders, w->wd);
    free(w);
}

static void log_keep_on_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct log_keep *k = arg;
    struct watched *w, *next;

    HASH_ITER (hh, k->watched, w, next) {
        if (w->wd == wd && (mask & IN_IGNORED) != 0) { /* the folder was removed, with its pod */
            give_order(k, ORDER_END, w->path);
            HASH_DEL(k->watched, w);
            free(w);
        } else if ((mask & IN_Q_OVERFLOW) != 0 ||
                   (w->wd == wd && strcmp(strrchr(w->path, '/') + 1, name) == 0)) {
            give_order(k, ORDER_BEGIN, w->path);
        }
    }
}

void log_keep_begin(struct log_keep *k, const char *path)
{
    if (k != NULL)
        log_keep_watch(k, path);
    give_order(k, ORDER_BEGIN, path);
}

void log_keep_end(struct log_keep *k, const char *path)
{
    if (k != NULL)
        log_keep_unwatch(k, path);
    give_order(k, ORDER_END, path);
}

void log_keep_remove(struct log_keep *k, const char *path)
{
    if (k != NULL)
        log_keep_unwatch(k, path);
    give_order(k, ORDER_REMOVE, path);
}

/* ---- events ---- */

/* More signals than the kernel queues become a SIGIO without descriptor: then check each log. */
static void on_signals(struct log_keep *k)
{
    struct signalfd_siginfo info[SIGNALS_AT_ONCE];
    ssize_t n = read(k->signals, info, sizeof(info));
    struct kept *one, *next;

    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(*info); i++)
        HASH_ITER (hh, k->kept, one, next)
            if (info[i].ssi_signo == SIGIO || one->turn.lease == info[i].ssi_fd) {
                log_turn_held(&one->turn);
                log_keep_expect(k, one);
            }
}

/* conmon's pending rename is looked for; a turn reads the present files, so a superfluous one does nothing.
 */
static void look_at_awaited(struct log_keep *k)
{
    struct kept *one, *next;

    for (one = LIST_FIRST(&k->awaited); one != NULL; one = next) {
        next = LIST_NEXT(one, awaited);
        if (one->look_ns > uv_hrtime())
            continue;
        log_turn_look(&one->turn);
        log_keep_await(k, one,
                       log_turn_awaits(&one->turn) && one->wait_ns < WAIT_LAST_NS ? one->wait_ns * 2 : 0);
    }
}

/* NULL: none is due. */
static const struct timespec *until_next_look(const struct log_keep *k, struct timespec *ret)
{
    const uint64_t now = uv_hrtime();
    const struct kept *one;
    uint64_t next = UINT64_MAX;

    LIST_FOREACH (one, &k->awaited, awaited)
        if (one->look_ns < next)
            next = one->look_ns;
    if (next == UINT64_MAX)
        return NULL;
    next = next > now ? next - now : 0;
    *ret = (struct timespec){ .tv_sec = (time_t)(next / 1000000000), .tv_nsec = (long)(next % 1000000000) };
    return ret;
}

/* Between two files conmon is ahead: it writes while the next one is being prepared. On a machine with more
 * work than CPUs an ordinary thread is scheduled later than two files take to fill; this one runs for
 * microseconds at a time. Best effort, if not permitted. */
static void go_first(void)
{
    const struct sched_param lowest = { .sched_priority = 1 };

    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) != 0 &&
        setpriority(PRIO_PROCESS, (id_t)gettid(), -20) != 0)
        log_debug("cannot raise the priority of the thread that keeps logs", F_STR("err", strerror(errno)));
}

static void *log_keep_run(void *arg)
{
    struct log_keep *k = arg;
    struct pollfd p[] = { { .fd = k->signals, .events = POLLIN }, { .fd = k->wake, .events = POLLIN } };
    bool go_on = true;

    go_first();
    while (go_on) {
        struct timespec wait;
        int ready = ppoll(p, ARRAY_LEN(p), until_next_look(k, &wait), NULL);

        if (ready < 0)
            continue;
        work_job_begins();
        if (p[0].revents != 0) /* first: a conmon is blocked */
            on_signals(k);
        if (p[1].revents != 0)
            go_on = on_orders(k);
        look_at_awaited(k);
        work_job_ends();
    }
    while (k->kept != NULL)
        log_keep_forget(k, k->kept);
    return NULL;
}

/* ---- its life ---- */

static enum err_code open_descriptors(struct log_keep *k, struct err *e)
{
    sigset_t lease;

    sigemptyset(&lease);
    sigaddset(&lease, LOG_LEASE_SIGNAL);
    sigaddset(&lease, SIGIO);
    k->signals = signalfd(-1, &lease, SFD_CLOEXEC | SFD_NONBLOCK);
    k->wake = k->signals >= 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    return k->wake >= 0 ? ERR_OK : err_sys(e, errno, "watch logs");
}

static void free_all(struct log_keep *k)
{
    struct watched *w, *next;
    struct order *o;

    watch_set_close(k->folders);
    HASH_ITER (hh, k->watched, w, next) {
        HASH_DEL(k->watched, w);
        free(w);
    }
    while ((o = STAILQ_FIRST(&k->orders)) != NULL) {
        STAILQ_REMOVE_HEAD(&k->orders, link);
        free(o);
    }
    scope_close_p(&k->signals);
    scope_close_p(&k->wake);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

enum err_code log_keep_open(struct log_keep **ret, uv_loop_t *loop, unsigned max_files, struct err *e)
{
    struct log_keep *k = calloc(1, sizeof(*k));
    int sys;

    *ret = NULL;
    if (k == NULL)
        return err_nomem(e);
    k->max_files = max_files;
    k->signals = k->wake = -1;
    STAILQ_INIT(&k->orders);
    LIST_INIT(&k->awaited);
    pthread_mutex_init(&k->lock, NULL);
    if (open_descriptors(k, e) == ERR_OK &&
        watch_set_open(&k->folders, loop, log_keep_on_event, k, e) == ERR_OK &&
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
    if (k == NULL)
        return;
    pthread_mutex_lock(&k->lock);
    k->closing = true;
    pthread_mutex_unlock(&k->lock);
    log_keep_wake(k);
    pthread_join(k->thread, NULL);
    free_all(k);
}
