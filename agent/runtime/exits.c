/*
 * Ends as events: inotify on the folder where conmon writes exit codes, and a pidfd on each conmon for the
 * case that it goes without writing one.
 */
#include "agent/runtime/container_internal.h"

#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

bool rt_pidfd_ended(int pidfd)
{
    struct pollfd p = { .fd = pidfd, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

/* ---- closing --------------------------------------------------------------------------------- */

static void handle_closed(struct rt *rt)
{
    rt->open_handles--;
    if (rt->closing && rt->open_handles == 0)
        rt_free(rt);
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct rt_watch *w = handle->data;
    struct rt *rt = w->rt;

    free(w);
    handle_closed(rt);
}

static void on_exits_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void drop(struct rt *rt, struct rt_watch *w)
{
    HASH_DEL(rt->watches, w);
    uv_close((uv_handle_t *)&w->poll, on_watch_closed);
    close(w->pidfd);
    w->pidfd = -1;
}

/* ---- watching -------------------------------------------------------------------------------- */

struct rt_watch *rt_watch_find(struct rt *rt, const char *id)
{
    struct rt_watch *w;

    HASH_FIND_STR(rt->watches, id, w);
    return w;
}

void rt_watch_remove(struct rt *rt, const char *id)
{
    struct rt_watch *w = rt_watch_find(rt, id);

    if (w != NULL)
        drop(rt, w);
}

/* conmon writes the exit file before it ends: an end without one is the loss that rt_state() reports. */
static void on_conmon_end(uv_poll_t *poll, int status, int events)
{
    struct rt_watch *w = poll->data;
    struct rt *rt = w->rt;
    char id[RT_ID_SIZE];

    (void)events;
    if (status < 0 && !rt_pidfd_ended(w->pidfd))
        return;
    memcpy(id, w->id, sizeof(id));
    drop(rt, w);
    rt->on_event(id, rt->arg);
}

enum err_code rt_watch_add(struct rt *rt, const char *id, int pidfd, struct err *e)
{
    struct rt_watch *w = calloc(1, sizeof(*w));
    int status;

    rt_watch_remove(rt, id);
    if (w == NULL) {
        close(pidfd);
        return err_nomem(e);
    }
    w->rt = rt;
    w->pidfd = pidfd;
    snprintf(w->id, sizeof(w->id), "%s", id);
    status = uv_poll_init(rt->loop, &w->poll, pidfd);
    if (status != 0) {
        free(w);
        close(pidfd);
        return err_sys(e, -status, "watch conmon of %s", id);
    }
    w->poll.data = w;
    rt->open_handles++;
    HASH_ADD_STR(rt->watches, id, w);
    if (w->hh.tbl == NULL) {
        uv_close((uv_handle_t *)&w->poll, on_watch_closed);
        close(pidfd);
        return err_nomem(e);
    }
    uv_poll_start(&w->poll, UV_READABLE, on_conmon_end);
    return ERR_OK;
}

/* ---- exit files ------------------------------------------------------------------------------ */

static void tell(struct rt *rt, const char *id)
{
    rt_watch_remove(rt, id);
    rt->on_event(id, rt->arg);
}

/* The kernel dropped events: ask for each container that is watched. */
static void tell_all(struct rt *rt)
{
    struct rt_watch *w, *next;

    log_debug("exit events were lost; asking for all containers");
    HASH_ITER (hh, rt->watches, w, next) {
        struct rt_path file = rt_exit_file(rt, w->id);
        char id[RT_ID_SIZE];

        if (access(file.s, F_OK) != 0)
            continue;
        memcpy(id, w->id, sizeof(id));
        tell(rt, id);
        /* A handler may have removed others: `next` may be gone.  Each round removes one, so this ends. */
        next = rt->watches;
    }
}

static void on_exits(uv_poll_t *poll, int status, int events)
{
    _Alignas(struct inotify_event) char chunk[16 * 1024];
    struct rt *rt = poll->data;
    const struct inotify_event *event;
    ssize_t n;
    char *p;

    (void)status;
    (void)events;
    n = read(rt->exits_fd, chunk, sizeof(chunk));
    for (p = chunk; n > 0 && p < chunk + n; p += sizeof(*event) + event->len) {
        event = (const struct inotify_event *)(const void *)p;
        if (rt->closing)
            return;
        if ((event->mask & IN_Q_OVERFLOW) != 0)
            tell_all(rt);
        else if (event->len > 0 && rt_id_valid(event->name)) /* conmon's temporary names are longer */
            tell(rt, event->name);
    }
}

enum err_code rt_exits_open(struct rt *rt, struct err *e)
{
    struct rt_path dir = rt_exit_file(rt, "");
    fd_auto fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int status;

    if (fd < 0)
        return err_sys(e, errno, "make an inotify instance (see fs.inotify.max_user_instances)");
    /* Renamed into place by conmon 2; written in place by supervisors that do it otherwise. */
    if (inotify_add_watch(fd, dir.s, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR) < 0)
        return err_sys(e, errno, "watch %s", dir.s);
    status = uv_poll_init(rt->loop, &rt->exits_poll, fd);
    if (status != 0)
        return err_sys(e, -status, "watch %s", dir.s);
    rt->exits_poll.data = rt;
    rt->exits_fd = take_fd(&fd);
    rt->open_handles++;
    uv_poll_start(&rt->exits_poll, UV_READABLE, on_exits);
    return ERR_OK;
}

void rt_exits_close(struct rt *rt)
{
    struct rt_watch *w, *next;

    rt->closing = true;
    HASH_ITER (hh, rt->watches, w, next)
        drop(rt, w);
    uv_close((uv_handle_t *)&rt->exits_poll, on_exits_closed);
    close(rt->exits_fd);
    rt->exits_fd = -1;
}
