/* SPDX-License-Identifier: Apache-2.0 */
/* Events of exits: inotify on the folder where conmon writes exit codes, and a pidfd on each conmon in case
 * it ends without writing one. */
#include "agent/runtime/container_internal.h"

#include "base/files/fs.h"
#include "base/files/watches.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
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

/* ---- closing ---- */

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

static void rt_exits_drop(struct rt *rt, struct rt_watch *w)
{
    HASH_DEL(rt->watches, w);
    uv_close((uv_handle_t *)&w->poll, on_watch_closed);
    close(w->pidfd);
    w->pidfd = -1;
}

/* ---- watching ---- */

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
        rt_exits_drop(rt, w);
}

/* conmon writes the exit file before it ends; without it, rt_state() reports the loss. */
static void on_conmon_end(uv_poll_t *poll, int status, int events)
{
    struct rt_watch *w = poll->data;
    struct rt *rt = w->rt;
    char id[RT_ID_SIZE];

    (void)events;
    if (status < 0 && !rt_pidfd_ended(w->pidfd))
        return;
    memcpy(id, w->id, sizeof(id));
    rt_exits_drop(rt, w);
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

/* ---- exit files ---- */

static void rt_exits_report(struct rt *rt, const char *id)
{
    rt_watch_remove(rt, id);
    rt->on_event(id, rt->arg);
}

/* Events were lost: reports each container that has, or may have, an exit file. */
static void rt_exits_report_all(struct rt *rt)
{
    struct rt_watch *w, *next;

    log_debug("exit events were lost; checking all containers");
    HASH_ITER (hh, rt->watches, w, next) {
        struct rt_path file = rt_exit_file(rt, w->id);
        struct err e = { 0 };

        if (!presence_is_absent(fs_look_at(AT_FDCWD, file.s, NULL, &e)))
            rt->on_event(w->id, rt->arg);
    }
}

static void on_exits(int wd, uint32_t mask, const char *name, void *arg)
{
    struct rt *rt = arg;

    (void)wd;
    if ((mask & IN_Q_OVERFLOW) != 0)
        rt_exits_report_all(rt);
    else if (rt_id_valid(name)) /* conmon's temporary names are longer */
        rt_exits_report(rt, name);
}

enum err_code rt_exits_open(struct rt *rt, struct err *e)
{
    struct rt_path dir = rt_exit_file(rt, "");

    if (watch_set_open(&rt->exits, rt->loop, on_exits, rt, e) != ERR_OK)
        return e->code;
    /* conmon 2 renames it into place; other supervisors write it in place. */
    if (watch_set_add(rt->exits, dir.s, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR) < 0) {
        err_sys(e, errno, "watch %s", dir.s);
        watch_set_close(rt->exits);
        return e->code;
    }
    return ERR_OK;
}

void rt_exits_close(struct rt *rt)
{
    struct rt_watch *w, *next;

    rt->closing = true;
    HASH_ITER (hh, rt->watches, w, next)
        rt_exits_drop(rt, w);
    watch_set_close(rt->exits);
    rt->exits = NULL;
    rt->open_handles++;
    handle_closed(rt);
}
