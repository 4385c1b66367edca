/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroups/pids_watch.h"

#include "base/files/watches.h"
#include "base/list.h"
#include "base/log.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS "pids.events"

struct pids_cgroup {
    UT_hash_handle hh; /* by path */
    int dir;
    int wd;           /* -1: paused */
    uint64_t counted; /* refused forks */
    uint64_t rest_ms; /* end of the pause, by uv_now(); 0: not paused */
    char path[];
};

struct cg_pids_watch {
    const struct cg_hier *hier;
    uv_loop_t *loop;
    void (*fn)(const char *path, void *arg);
    void *arg;
    struct watch_set *files;
    struct pids_cgroup *cgroups;
    uv_timer_t timer; /* the end of the first pause */
    void (*closed)(void *arg);
    void *closed_arg;
};

static const struct cg_hier *pids_hier(const struct cg_tree *t)
{
    for (size_t i = 0; i < t->n_hiers; i++)
        if (t->hiers[i].controllers & CG_CTL_PIDS)
            return &t->hiers[i];
    return NULL;
}

static void pids_listen(struct cg_pids_watch *w, struct pids_cgroup *c)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d/" EVENTS, c->dir);
    c->wd = watch_set_add(w->files, path, IN_MODIFY);
    if (c->wd < 0)
        log_debug("cannot watch for refused forks", F_STR("cgroup", c->path), F_I64("errno", errno));
}

/* Whether forks were refused since the last call. */
static bool refused(struct pids_cgroup *c)
{
    return cg_count_grew(c->dir, EVENTS, "max", &c->counted);
}

/* ---- pauses ---- */

static void pids_on_timer(uv_timer_t *timer);

static void plan_rests(struct cg_pids_watch *w)
{
    uint64_t first = 0, now = uv_now(w->loop);

    for (struct pids_cgroup *c = w->cgroups; c != NULL; c = c->hh.next)
        if (c->rest_ms != 0 && (first == 0 || c->rest_ms < first))
            first = c->rest_ms;
    if (first == 0)
        uv_timer_stop(&w->timer);
    else
        uv_timer_start(&w->timer, pids_on_timer, first > now ? first - now : 0, 0);
}

static void let_rest(struct cg_pids_watch *w, struct pids_cgroup *c)
{
    if (c->wd >= 0)
        watch_set_remove(w->files, c->wd);
    c->wd = -1;
    uv_update_time(w->loop);
    c->rest_ms = uv_now(w->loop) + CG_PIDS_REST_MS;
    plan_rests(w);
}

static struct pids_cgroup *rested(const struct cg_pids_watch *w)
{
    for (struct pids_cgroup *c = w->cgroups; c != NULL; c = c->hh.next)
        if (c->rest_ms != 0 && c->rest_ms <= uv_now(w->loop))
            return c;
    return NULL;
}

/* The file is watched before it is read, so a refusal in between is reported twice at most. fn may remove any
 * cgroup. */
static void pids_on_timer(uv_timer_t *timer)
{
    struct cg_pids_watch *w = timer->data;
    struct pids_cgroup *c;

    while ((c = rested(w)) != NULL) {
        c->rest_ms = 0;
        pids_listen(w, c);
        if (!refused(c))
            continue;
        let_rest(w, c);
        w->fn(c->path, w->arg);
    }
    plan_rests(w);
}

static void pids_on_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct cg_pids_watch *w = arg;

    (void)name;
    if (mask & IN_IGNORED) /* of a watch that was removed for a pause, or with the cgroup */
        return;
    for (struct pids_cgroup *c = w->cgroups, *next; c != NULL; c = next) {
        next = c->hh.next;
        if ((wd >= 0 && c->wd != wd) || c->wd < 0 || !refused(c))
            continue;
        let_rest(w, c);
        w->fn(c->path, w->arg);
        return; /* fn may have removed any cgroup */
    }
}

/* ---- cgroups ---- */

static void pids_drop(struct cg_pids_watch *w, struct pids_cgroup *c)
{
    HASH_DEL(w->cgroups, c);
    if (c->wd >= 0)
        watch_set_remove(w->files, c->wd);
    close(c->dir);
    free(c);
}

static struct pids_cgroup *pids_find(const struct cg_pids_watch *w, const char *path)
{
    struct pids_cgroup *c;

    HASH_FIND_STR(w->cgroups, path, c);
    return c;
}

static struct pids_cgroup *pids_new(const char *path, int dir)
{
    struct pids_cgroup *c = calloc(1, sizeof(*c) + strlen(path) + 1);

    if (c == NULL)
        return NULL;
    memcpy(c->path, path, strlen(path) + 1);
    c->dir = dir;
    c->wd = -1;
    return c;
}

enum err_code cg_pids_watch_add(struct cg_pids_watch *w, const char *path, struct err *e)
{
    struct pids_cgroup *c;
    bool lost = false;

    if (pids_find(w, path) != NULL)
        return ERR_OK;
    fd_auto dir = cg_open_dir(w->hier, path);
    if (dir < 0 || faccessat(dir, EVENTS, F_OK, 0) != 0)
        return err_sys(e, errno, "watch " EVENTS " of %s", path);
    c = pids_new(path, dir);
    if (c != NULL) {
        HASH_ADD_STR(w->cgroups, path, c);
        lost = pids_find(w, path) != c;
    }
    if (c == NULL || lost) {
        free(c);
        return err_nomem(e);
    }
    take_fd(&dir);
    pids_listen(w, c);
    (void)refused(c); /* earlier refusals are not reported */
    return ERR_OK;
}

void cg_pids_watch_remove(struct cg_pids_watch *w, const char *path)
{
    struct pids_cgroup *c = pids_find(w, path);

    if (c == NULL)
        return;
    pids_drop(w, c);
    plan_rests(w);
}

/* ---- life ---- */

enum err_code cg_pids_watch_open(struct cg_pids_watch **ret, struct cg_tree *t, uv_loop_t *loop,
                                 void (*fn)(const char *path, void *arg), void *arg, struct err *e)
{
    const struct cg_hier *h = pids_hier(t);
    struct cg_pids_watch *w;

    if (h == NULL)
        return err_set(e, ERR_PRECONDITION, "no cgroup hierarchy has the pids controller");
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return err_nomem(e);
    *w = (struct cg_pids_watch){ .hier = h, .loop = loop, .fn = fn, .arg = arg };
    if (watch_set_open(&w->files, loop, pids_on_event, w, e) != ERR_OK) {
        free(w);
        return e->code;
    }
    uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    *ret = w;
    return ERR_OK;
}

static void pids_on_closed(uv_handle_t *handle)
{
    struct cg_pids_watch *w = handle->data;

    if (w->closed != NULL)
        w->closed(w->closed_arg);
    free(w);
}

void cg_pids_watch_close(struct cg_pids_watch *w, void (*closed)(void *arg), void *arg)
{
    if (w == NULL)
        return;
    while (w->cgroups != NULL)
        pids_drop(w, w->cgroups);
    watch_set_close(w->files);
    w->closed = closed;
    w->closed_arg = arg;
    uv_close((uv_handle_t *)&w->timer, pids_on_closed);
}
