/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroups/memory_alarm.h"

#include "base/files/fs.h"
#include "base/files/watches.h"
#include "base/log.h"
#include "base/work.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

/* Bytes that may be charged between our read of the usage and our write of a level just above it. */
#define WRITE_MARGIN (UINT64_C(4) << 20)

struct notice { /* v1: an eventfd of the kernel's; the kernel forgets it when it is closed */
    struct cg_memory_alarm *alarm;
    uv_poll_t poll;
    int fd;
};

struct cg_memory_alarm {
    uv_loop_t *loop;
    void (*fn)(void *arg);
    void *arg;
    bool v2;
    int dir; /* the cgroup */
    uint64_t level;
    uv_timer_t resting;
    bool rests, rang; /* rang: an event came during the pause */
    unsigned open_handles;
    bool closing;
    void (*closed)(void *arg);
    void *closed_arg;
    /* v2 */
    struct watch_set *files;
    int wd;
    const char *events; /* memory.events.local; memory.events before Linux 5.2 */
    uint64_t counted;   /* the last value of its "high" */
    /* v1 */
    struct notice *threshold, *reclaim;
    uint64_t seen; /* the caller's usage when it set the level */
    int made;      /* result of the job: a new threshold's eventfd */
    /* both */
    struct work work; /* v2: writes a level below the usage; v1: registers a threshold */
    bool working;
    uint64_t writing, written;
};

/* ---- reporting ---- */

static void alarm_ring(struct cg_memory_alarm *a)
{
    if (a->rests)
        a->rang = true;
    else if (a->level != UINT64_MAX && !a->closing)
        a->fn(a->arg);
}

/* ---- v2 ---- */

/* Whether the level was reached since the last call. */
static bool high_grew(struct cg_memory_alarm *a)
{
    return cg_count_grew(a->dir, a->events, "high", &a->counted);
}

static void memory_alarm_on_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct cg_memory_alarm *a = arg;

    (void)wd;
    (void)name;
    if (mask & IN_IGNORED) /* of a watch that was removed for a pause, or with the cgroup */
        return;
    if (high_grew(a))
        alarm_ring(a);
}

static void watch_events(struct cg_memory_alarm *a)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", a->dir, a->events);
    if (a->wd < 0)
        a->wd = watch_set_add(a->files, path, IN_MODIFY);
}

static void unwatch_events(struct cg_memory_alarm *a)
{
    if (a->wd >= 0)
        watch_set_remove(a->files, a->wd);
    a->wd = -1;
}

static enum err_code write_high(int dir, uint64_t bytes, struct err *e)
{
    char text[24] = "max";

    if (bytes != UINT64_MAX)
        snprintf(text, sizeof(text), "%" PRIu64, bytes);
    return fs_write_control(dir, "memory.high", text, e);
}

static enum err_code write_high_job(void *arg, struct err *e)
{
    const struct cg_memory_alarm *a = arg;

    return write_high(a->dir, a->writing, e);
}

static void memory_alarm_end(struct cg_memory_alarm *a);
static void catch_up(struct cg_memory_alarm *a);

static void memory_alarm_on_written(struct op *op, const struct err *result)
{
    struct cg_memory_alarm *a = op->owner;

    a->working = false;
    if (result->code != ERR_OK)
        log_warn("cannot set the memory alarm", F_ERR(result));
    a->written = a->writing;
    catch_up(a);
    memory_alarm_end(a);
}

/* A new level is written at once even if the write of the previous one still reclaims;
 * memory_alarm_on_written() then writes the new level again. */
static enum err_code set_high(struct cg_memory_alarm *a, struct err *e)
{
    uint64_t level = a->closing ? UINT64_MAX : a->level, usage = 0;
    bool below = level != UINT64_MAX &&
                 (presence_is_unknown(cg_read_u64(a->dir, "memory.current", &usage, ERR_IGNORED)) ||
                  usage + WRITE_MARGIN > level);

    if (!below) {
        if (write_high(a->dir, level, e) != ERR_OK)
            return e->code;
        a->written = level;
    } else if (!a->working) {
        a->working = true;
        a->writing = level;
        work_start(&a->work, "memory level", NULL, write_high_job, a, a->loop, memory_alarm_on_written, a);
    }
    return ERR_OK;
}

static void catch_up(struct cg_memory_alarm *a)
{
    struct err e = { 0 };

    if (a->written != (a->closing ? UINT64_MAX : a->level) && set_high(a, &e) != ERR_OK)
        log_warn("cannot set the memory alarm", F_ERR(&e));
}

static enum err_code open_high(struct cg_memory_alarm *a, struct err *e)
{
    a->wd = -1;
    a->events =
        faccessat(a->dir, "memory.events.local", F_OK, 0) == 0 ? "memory.events.local" : "memory.events";
    a->written = UINT64_MAX;
    if (write_high(a->dir, UINT64_MAX, e) != ERR_OK) /* removes an earlier agent's level */
        return e->code;
    if (watch_set_open(&a->files, a->loop, memory_alarm_on_event, a, e) != ERR_OK)
        return e->code;
    high_grew(a);
    watch_events(a);
    if (a->wd < 0) {
        err_sys(e, errno, "watch %s", a->events);
        watch_set_close(a->files);
    }
    return e->code;
}

/* ---- v1 ---- */

static void notice_on_closed(uv_handle_t *handle)
{
    struct notice *n = handle->data;
    struct cg_memory_alarm *a = n->alarm;

    close(n->fd);
    free(n);
    a->open_handles--;
    memory_alarm_end(a);
}

static void notice_close(struct notice *n)
{
    if (n != NULL)
        uv_close((uv_handle_t *)&n->poll, notice_on_closed);
}

static void notice_on_poll(uv_poll_t *poll, int status, int events)
{
    struct notice *n = poll->data;
    uint64_t count;

    (void)events;
    if (status == 0 && read(n->fd, &count, sizeof(count)) > 0)
        alarm_ring(n->alarm);
}

/* An eventfd, or -1. `what`: the file that the kernel watches; `how`: "<bytes>", "low,local". */
static int notice_register(int dir, const char *what, const char *how, struct err *e)
{
    fd_auto file = openat(dir, what, O_RDONLY | O_CLOEXEC);
    fd_auto event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    char text[64];

    if (file < 0) {
        err_sys(e, errno, "open %s", what);
        return -1;
    }
    if (event < 0) {
        err_sys(e, errno, "create an eventfd");
        return -1;
    }
    snprintf(text, sizeof(text), "%d %d %s", event, file, how);
    if (fs_write_control(dir, "cgroup.event_control", text, e) != ERR_OK) {
        err_wrap(e, "%s", what);
        return -1;
    }
    return take_fd(&event);
}

/* Takes ownership of `fd`. */
static enum err_code notice_open(struct cg_memory_alarm *a, int fd, struct notice **ret, struct err *e)
{
    fd_auto event = fd;
    struct notice *n = calloc(1, sizeof(*n));
    int rc;

    if (n == NULL)
        return err_nomem(e);
    rc = uv_poll_init(a->loop, &n->poll, event);
    if (rc != 0) {
        free(n);
        return err_sys(e, -rc, "poll an eventfd");
    }
    n->alarm = a;
    n->fd = take_fd(&event);
    n->poll.data = n;
    a->open_handles++;
    uv_poll_start(&n->poll, UV_READABLE, notice_on_poll);
    *ret = n;
    return ERR_OK;
}

/* Kernels for real-time work have no memory.pressure_level. */
static enum err_code open_reclaim(struct cg_memory_alarm *a, struct err *e)
{
    int event = notice_register(a->dir, "memory.pressure_level", "low,local", e);

    if (event >= 0)
        return notice_open(a, event, &a->reclaim, e);
    if (e->code == ERR_NOT_FOUND)
        *e = (struct err){ 0 };
    return e->code;
}

/* The kernel reports only crossings: one between the caller's read and now is reported here. */
static void report_crossed(const struct cg_memory_alarm *a)
{
    const uint64_t one = 1;
    uint64_t usage = 0;

    if (a->seen < a->level &&
        (presence_is_unknown(cg_read_u64(a->dir, "memory.usage_in_bytes", &usage, ERR_IGNORED)) ||
         usage >= a->level))
        ERR_IGNORE(write(a->threshold->fd, &one, sizeof(one)));
}

static enum err_code register_job(void *arg, struct err *e)
{
    struct cg_memory_alarm *a = arg;
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, a->writing);
    a->made = notice_register(a->dir, "memory.usage_in_bytes", text, e);
    return e->code;
}

static void set_threshold(struct cg_memory_alarm *a);

static void on_registered(struct op *op, const struct err *result)
{
    struct cg_memory_alarm *a = op->owner;
    fd_auto made = take_fd(&a->made);
    struct notice *before = a->threshold;
    struct err e = *result;

    a->working = false;
    if (!a->closing && a->level != UINT64_MAX) {
        if (made >= 0 && notice_open(a, take_fd(&made), &a->threshold, &e) == ERR_OK) {
            notice_close(before);
            a->written = a->writing;
            report_crossed(a);
        } else {
            log_warn("cannot set the memory alarm", F_ERR(&e));
        }
        if (a->level != a->writing)
            set_threshold(a);
    }
    memory_alarm_end(a);
}

/* Within that write the kernel waits for all readers of the list of thresholds (synchronize_rcu()): some 20
 * ms on an idle machine, hundreds on a busy one. The previous threshold stays until then. */
static void set_threshold(struct cg_memory_alarm *a)
{
    if (a->level == UINT64_MAX) {
        notice_close(take_ptr(&a->threshold));
    } else if (!a->working) {
        a->working = true;
        a->writing = a->level;
        work_start(&a->work, "memory threshold", NULL, register_job, a, a->loop, on_registered, a);
    }
}

/* ---- life ---- */

static const struct cg_hier *alarm_hier(const struct cg_tree *t)
{
    for (size_t i = 0; i < t->n_hiers; i++)
        if (t->hiers[i].controllers & CG_CTL_MEMORY)
            return &t->hiers[i];
    return NULL;
}

static void memory_alarm_end(struct cg_memory_alarm *a)
{
    if (!a->closing || a->open_handles > 0 || a->working)
        return;
    close(a->dir);
    if (a->closed != NULL)
        a->closed(a->closed_arg);
    free(a);
}

static void resting_on_closed(uv_handle_t *handle)
{
    struct cg_memory_alarm *a = handle->data;

    a->open_handles--;
    memory_alarm_end(a);
}

enum err_code cg_memory_alarm_open(struct cg_memory_alarm **ret, struct cg_tree *t, const char *path,
                                   uv_loop_t *loop, void (*fn)(void *arg), void *arg, struct err *e)
{
    const struct cg_hier *h = alarm_hier(t);
    struct cg_memory_alarm *a;

    if (h == NULL)
        return err_set(e, ERR_PRECONDITION, "no cgroup hierarchy has the memory controller");
    if (h->backend->v2 && strcmp(path, "/") == 0)
        return err_set(e, ERR_UNIMPLEMENTED, "the root cgroup of v2 reports no memory usage");
    fd_auto dir = cg_open_dir(h, path);
    if (dir < 0)
        return err_sys(e, errno, "open cgroup %s", path);
    a = calloc(1, sizeof(*a));
    if (a == NULL)
        return err_nomem(e);
    *a = (struct cg_memory_alarm){ .loop = loop, .fn = fn, .arg = arg, .v2 = h->backend->v2, .dir = dir };
    a->level = UINT64_MAX;
    a->made = -1;
    if ((a->v2 ? open_high(a, e) : open_reclaim(a, e)) != ERR_OK) {
        free(a);
        return err_wrap(e, "cgroup %s", path);
    }
    a->dir = take_fd(&dir);
    uv_timer_init(loop, &a->resting);
    a->resting.data = a;
    a->open_handles++;
    *ret = a;
    return ERR_OK;
}

enum err_code cg_memory_alarm_set(struct cg_memory_alarm *a, uint64_t bytes, uint64_t seen, struct err *e)
{
    if (bytes == a->level)
        return ERR_OK;
    a->level = bytes;
    a->seen = seen;
    if (a->v2)
        return set_high(a, e);
    set_threshold(a);
    return ERR_OK;
}

static void on_rested(uv_timer_t *timer)
{
    struct cg_memory_alarm *a = timer->data;
    bool rang = a->rang;

    a->rests = a->rang = false;
    if (a->v2) {
        watch_events(a);
        rang |= high_grew(a);
    }
    if (rang)
        alarm_ring(a);
}

/* During a pause v2 would send an event every 10 ms, so its file is not watched; v1 counts events in an
 * eventfd. */
void cg_memory_alarm_rest(struct cg_memory_alarm *a, uint64_t ms)
{
    a->rests = true;
    if (a->v2)
        unwatch_events(a);
    uv_timer_start(&a->resting, on_rested, ms, 0);
}

bool cg_memory_alarm_slows(const struct cg_memory_alarm *a)
{
    return a->v2;
}

void cg_memory_alarm_close(struct cg_memory_alarm *a, void (*closed)(void *arg), void *arg)
{
    if (a == NULL)
        return;
    a->closing = true;
    a->closed = closed;
    a->closed_arg = arg;
    if (a->v2) {
        watch_set_close(a->files);
        a->level = UINT64_MAX;
        catch_up(a);
    }
    notice_close(a->threshold);
    notice_close(a->reclaim);
    uv_close((uv_handle_t *)&a->resting, resting_on_closed);
}
