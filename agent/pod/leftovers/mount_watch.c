/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/leftovers/mount_watch.h"

#include "agent/pod/leftovers/internal.h"

#include <errno.h>
#include <fcntl.h>

#define PAUSE_MS 1000 /* on a busy node mounts change all the time */

struct mount_watch {
    struct node *node;
    int fd; /* of mountinfo: poll(2) returns POLLPRI after a change */
    unsigned open_handles, rounds;
    uv_poll_t poll;
    uv_timer_t pause; /* runs from one round to the next possible one */
    bool changed;     /* during the pause */
};

static void mount_watch_on_closed(uv_handle_t *handle)
{
    struct mount_watch *w = handle->data;

    if (--w->open_handles > 0)
        return;
    close(w->fd);
    free(w);
}

void mount_watch_end(struct node *n)
{
    struct mount_watch *w = take_ptr(&leftovers_node(n)->mount_watch);

    if (w == NULL)
        return;
    uv_close((uv_handle_t *)&w->poll, mount_watch_on_closed);
    uv_close((uv_handle_t *)&w->pause, mount_watch_on_closed);
}

static bool mount_watch_tell(struct node *n)
{
    bool waits = false;

    ROOMS_EACH(r, n)
    if ((*r)->node.mounts_changed != NULL && (*r)->node.mounts_changed(n))
        waits = true;
    return waits;
}

unsigned mount_watch_rounds(const struct node *n)
{
    const struct leftovers_node *part = leftovers_node(n);

    return part->mount_watch != NULL ? part->mount_watch->rounds : 0;
}

static void mount_watch_on_pause_over(uv_timer_t *timer);

static void round_begin(struct mount_watch *w)
{
    w->changed = false;
    w->rounds++;
    if (mount_watch_tell(w->node))
        uv_timer_start(&w->pause, mount_watch_on_pause_over, PAUSE_MS, 0);
    else
        mount_watch_end(w->node);
}

static void mount_watch_on_pause_over(uv_timer_t *timer)
{
    struct mount_watch *w = timer->data;

    if (w->changed)
        round_begin(w);
}

static void mount_watch_on_change(uv_poll_t *poll, int status, int events)
{
    struct mount_watch *w = poll->data;

    (void)status;
    (void)events;
    if (uv_is_active((uv_handle_t *)&w->pause))
        w->changed = true;
    else
        round_begin(w);
}

enum err_code mount_watch_begin(struct node *n, bool *ret_new, struct err *e)
{
    struct leftovers_node *part = leftovers_node(n);
    struct mount_watch *w;
    int status;

    *ret_new = part->mount_watch == NULL;
    if (!*ret_new)
        return ERR_OK;
    if (n->closing)
        return err_set(e, ERR_UNAVAILABLE, "the agent is shutting down");
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return err_nomem(e);
    w->node = n;
    w->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    status = w->fd >= 0 ? uv_poll_init(n->o.loop, &w->poll, w->fd) : -errno;
    if (status != 0) {
        if (w->fd >= 0)
            close(w->fd);
        free(w);
        return err_sys(e, -status, "watch the mounts");
    }
    uv_timer_init(n->o.loop, &w->pause);
    w->poll.data = w->pause.data = w;
    w->open_handles = 2;
    w->rounds = 1;
    uv_poll_start(&w->poll, UV_PRIORITIZED, mount_watch_on_change);
    uv_unref((uv_handle_t *)&w->poll); /* does not keep the loop alive */
    part->mount_watch = w;
    return ERR_OK;
}
