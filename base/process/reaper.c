/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/internal.h"

#include "base/list.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ---- stuck children ---- */

struct stray {
    uv_poll_t poll;
    pid_t pid;
    int pidfd;
    TAILQ_ENTRY(stray) next;
};

TAILQ_HEAD(stray_list, stray);

static struct stray_list strays = TAILQ_HEAD_INITIALIZER(strays); /* loop thread only */
static size_t stray_count;

static void reaper_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void reaper_drop(struct stray *s)
{
    TAILQ_REMOVE(&strays, s, next);
    stray_count--;
    uv_close((uv_handle_t *)&s->poll, reaper_on_closed);
    close(s->pidfd);
}

static void on_died(uv_poll_t *poll, int status, int events)
{
    struct stray *s = poll->data;
    siginfo_t info = { 0 };

    (void)status;
    (void)events;
    if (waitid(P_PIDFD, (id_t)s->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        return;
    log_debug("stuck child finally died", F_I64("pid", s->pid));
    reaper_drop(s);
}

void reaper_adopt(uv_loop_t *loop, pid_t pid, int pidfd, const char *name, const char *subject)
{
    struct stray *s = calloc(1, sizeof(*s));

    log_warn("child process does not die from SIGKILL; abandoning it", F_STR("name", name),
             F_STR("subject", subject), F_I64("pid", pid), F_U64("leftBehind", stray_count + 1));
    if (s == NULL || uv_poll_init(loop, &s->poll, pidfd) != 0) {
        free(s); /* not reaped until the daemon ends: one zombie */
        close(pidfd);
        return;
    }
    s->poll.data = s;
    s->pid = pid;
    s->pidfd = pidfd;
    TAILQ_INSERT_TAIL(&strays, s, next);
    stray_count++;
    uv_poll_start(&s->poll, UV_READABLE, on_died);
    uv_unref((uv_handle_t *)&s->poll); /* does not keep the loop alive */
}

/* ---- ended, but not reaped yet ---- */

#define LATER_MS 30

struct ended {
    uv_timer_t timer;
    int pidfd;
    TAILQ_ENTRY(ended) next;
};

static TAILQ_HEAD(, ended) endeds = TAILQ_HEAD_INITIALIZER(endeds); /* loop thread only */

static void reaper_reap(int pidfd)
{
    waitid(P_PIDFD, (id_t)pidfd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
}

static void on_ended_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void reap_ended(struct ended *d)
{
    TAILQ_REMOVE(&endeds, d, next);
    reaper_reap(d->pidfd);
    close(d->pidfd);
    uv_close((uv_handle_t *)&d->timer, on_ended_closed);
}

static void reaper_on_later(uv_timer_t *timer)
{
    reap_ended(timer->data);
}

void reaper_later(uv_loop_t *loop, int pidfd)
{
    int copy = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
    struct ended *d = copy >= 0 ? calloc(1, sizeof(*d)) : NULL;

    if (d == NULL) {
        reaper_reap(pidfd);
        if (copy >= 0)
            close(copy);
        return;
    }
    d->pidfd = copy;
    uv_timer_init(loop, &d->timer);
    d->timer.data = d;
    uv_timer_start(&d->timer, reaper_on_later, LATER_MS, 0);
    TAILQ_INSERT_TAIL(&endeds, d, next);
}

/* ---- both ---- */

size_t proc_left_behind(void)
{
    return stray_count + spawn_abandoned();
}

void proc_forget(uv_loop_t *loop)
{
    struct stray *s, *next_stray;
    struct ended *d, *next_ended;

    TAILQ_FOREACH_SAFE (d, &endeds, next, next_ended)
        if (d->timer.loop == loop)
            reap_ended(d);
    TAILQ_FOREACH_SAFE (s, &strays, next, next_stray)
        if (s->poll.loop == loop)
            reaper_drop(s);
}
