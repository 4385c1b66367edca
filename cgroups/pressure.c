/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroups/pressure.h"

#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#define WINDOW_MIN_US 500000 /* kernel/sched/psi.c */
#define WINDOW_MAX_US 10000000

struct cg_pressure {
    enum { BY_PSI, BY_HIGH, BY_THRESHOLD } by;
    int fd;
    int dir;          /* BY_HIGH: the cgroup */
    uint64_t counted; /* BY_HIGH: of memory.events' high */
    uint64_t bytes;   /* BY_THRESHOLD */
};

static const char *const psi_files[] = {
    [CG_RES_CPU] = "cpu", [CG_RES_MEMORY] = "memory", [CG_RES_IO] = "io"
};

static enum err_code pressure_make(struct cg_pressure **ret, int by, int *fd, int *dir, struct err *e)
{
    struct cg_pressure *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return err_nomem(e);
    p->by = by;
    p->fd = take_fd(fd);
    p->dir = dir != NULL ? take_fd(dir) : -1;
    *ret = p;
    return ERR_OK;
}

void cg_pressure_close(struct cg_pressure *p)
{
    if (p == NULL)
        return;
    scope_close_p(&p->fd);
    scope_close_p(&p->dir);
    free(p);
}

int cg_pressure_fd(const struct cg_pressure *p)
{
    return p->fd;
}

short cg_pressure_poll_events(const struct cg_pressure *p)
{
    return p->by == BY_PSI ? POLLPRI : POLLIN;
}

/* ---- PSI ---- */

/* Pressure of the whole machine is in /proc, that of a cgroup in its v2 folder. */
static int open_psi(const struct cg_tree *t, const char *path, const char *resource)
{
    char file[64];

    if (strcmp(path, "/") == 0) {
        snprintf(file, sizeof(file), "/proc/pressure/%s", resource);
        return open(file, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    }
    snprintf(file, sizeof(file), "%s.pressure", resource);
    for (size_t i = 0; i < t->n_hiers; i++) {
        if (!t->hiers[i].backend->v2)
            continue;
        fd_auto dir = cg_open_dir(&t->hiers[i], path);
        return dir < 0 ? -1 : openat(dir, file, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    }
    errno = EOPNOTSUPP;
    return -1;
}

static bool exists(const struct cg_tree *t, const char *path)
{
    for (size_t i = 0; i < t->n_hiers; i++) {
        fd_auto dir = cg_open_dir(&t->hiers[i], path);
        if (dir >= 0)
            return true;
    }
    return false;
}

enum err_code cg_pressure_open_psi(struct cg_pressure **ret, struct cg_tree *t, const char *path,
                                   const struct cg_psi_trigger *trigger, struct err *e)
{
    const char *resource = psi_files[trigger->resource];
    char text[64];
    ssize_t n;

    if (trigger->window_us < WINDOW_MIN_US || trigger->window_us > WINDOW_MAX_US || trigger->stall_us == 0 ||
        trigger->stall_us > trigger->window_us)
        return err_set(
            e, ERR_INVALID,
            "pressure trigger of %u us in %u us: the window must have 500 ms to 10 s, and the wait "
            "fit into it",
            trigger->stall_us, trigger->window_us);
    fd_auto fd = open_psi(t, path, resource);
    if (fd < 0 && !exists(t, path))
        return err_set(e, ERR_NOT_FOUND, "%s pressure of cgroup %s: no such cgroup", resource, path);
    if (fd < 0)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "%s pressure of cgroup %s: not supported by this kernel (cgroup v1, no CONFIG_PSI, or "
                       "psi=1 missing on its command line)",
                       resource, path);
    n = snprintf(text, sizeof(text), "%s %u %u", trigger->full ? "full" : "some", trigger->stall_us,
                 trigger->window_us);
    if (write(fd, text, (size_t)n + 1) < 0) /* including its NUL */
        return errno == EOPNOTSUPP
                   ? err_set(e, ERR_UNIMPLEMENTED, "%s pressure: switched off in this kernel (psi=1)",
                             resource)
                   : err_sys(e, errno, "set a trigger on the %s pressure of cgroup %s", resource, path);
    return pressure_make(ret, BY_PSI, &fd, NULL, e);
}

/* ---- memory usage ---- */

static enum err_code open_high(struct cg_pressure **ret, const struct cg_hier *h, const char *path,
                               uint64_t bytes, struct err *e)
{
    char text[64];
    fd_auto dir = cg_open_dir(h, path);
    fd_auto fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    uint64_t counted = 0;

    if (dir < 0)
        return err_sys(e, errno, "open cgroup %s", path);
    if (fd < 0)
        return err_sys(e, errno, "make an inotify instance (see fs.inotify.max_user_instances)");
    snprintf(text, sizeof(text), "/proc/self/fd/%d/memory.events", dir);
    if (inotify_add_watch(fd, text, IN_MODIFY) < 0)
        return err_sys(e, errno, "watch memory.events of cgroup %s", path);
    snprintf(text, sizeof(text), "%" PRIu64, bytes);
    if (fs_write_control(dir, "memory.high", text, e) != ERR_OK)
        return err_wrap(e, "cgroup %s", path);
    if (presence_is_unknown(cg_look_key(dir, "memory.events", "high", &counted, e)))
        return err_wrap(e, "cgroup %s", path);
    if (pressure_make(ret, BY_HIGH, &fd, &dir, e) != ERR_OK)
        return e->code;
    (*ret)->counted = counted;
    return ERR_OK;
}

/* "<eventfd> <descriptor of memory.usage_in_bytes> <bytes>": notified on crossing, up or down. */
static enum err_code open_threshold(struct cg_pressure **ret, const struct cg_hier *h, const char *path,
                                    uint64_t bytes, struct err *e)
{
    char text[64];
    fd_auto dir = cg_open_dir(h, path);
    fd_auto fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fd_auto usage = dir >= 0 ? openat(dir, "memory.usage_in_bytes", O_RDONLY | O_CLOEXEC) : -1;

    if (usage < 0)
        return err_sys(e, errno, "open memory.usage_in_bytes of cgroup %s", path);
    if (fd < 0)
        return err_sys(e, errno, "make an eventfd");
    snprintf(text, sizeof(text), "%d %d %" PRIu64, fd, usage, bytes);
    if (fs_write_control(dir, "cgroup.event_control", text, e) != ERR_OK)
        return err_wrap(e, "cgroup %s", path);
    if (pressure_make(ret, BY_THRESHOLD, &fd, &dir, e) != ERR_OK)
        return e->code;
    (*ret)->bytes = bytes;
    return ERR_OK;
}

enum err_code cg_pressure_open_memory(struct cg_pressure **ret, struct cg_tree *t, const char *path,
                                      uint64_t bytes, struct err *e)
{
    if (strcmp(path, "/") == 0 || path[0] != '/' || !fs_path_is_safe(path + 1))
        return err_set(e, ERR_INVALID,
                       "memory in use of cgroup \"%.200s\": not an absolute path below the root", path);
    for (size_t i = 0; i < t->n_hiers; i++)
        if (t->hiers[i].controllers & CG_CTL_MEMORY)
            return t->hiers[i].backend->v2 ? open_high(ret, &t->hiers[i], path, bytes, e)
                                           : open_threshold(ret, &t->hiers[i], path, bytes, e);
    return err_set(e, ERR_NOT_FOUND, "memory in use of cgroup %s: no hierarchy has the memory controller",
                   path);
}

/* ---- taking ---- */

static bool take_high(struct cg_pressure *p, bool *ret_gone)
{
    _Alignas(struct inotify_event) char chunk[4096];
    uint64_t count = 0, before = p->counted;
    struct err e = { 0 };

    while (read(p->fd, chunk, sizeof(chunk)) > 0) {
    }
    switch (presence_of(cg_look_key(p->dir, "memory.events", "high", &count, &e))) {
    case PRESENCE_UNKNOWN: /* the event is consumed; a superfluous report is better than none */
        return true;
    case PRESENCE_ABSENT:
        *ret_gone = true;
        return false;
    case PRESENCE_PRESENT:
        break;
    }
    p->counted = count;
    return count > before;
}

static bool take_threshold(struct cg_pressure *p, bool *ret_gone)
{
    uint64_t count, usage = 0;
    struct err e = { 0 };

    if (read(p->fd, &count, sizeof(count)) < 0)
        return false;
    switch (presence_of(cg_look_u64(p->dir, "memory.usage_in_bytes", &usage, &e))) {
    case PRESENCE_UNKNOWN:
        return true;
    case PRESENCE_ABSENT:
        *ret_gone = true;
        return false;
    case PRESENCE_PRESENT:
        break;
    }
    return usage >= p->bytes;
}

bool cg_pressure_take(struct cg_pressure *p, short revents, bool *ret_gone)
{
    *ret_gone = false;
    switch (p->by) {
    case BY_PSI:
        *ret_gone = (revents & POLLERR) != 0;
        return (revents & POLLPRI) != 0 && !*ret_gone;
    case BY_HIGH:
        return take_high(p, ret_gone);
    case BY_THRESHOLD:
        return take_threshold(p, ret_gone);
    }
    return false;
}
