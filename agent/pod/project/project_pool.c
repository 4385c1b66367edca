/* SPDX-License-Identifier: Apache-2.0 */
/* The one queue of work on the table of ids: requests that wait when a job begins are carried out together,
 * so that it shares the syncs of the disk. */
#include "agent/pod/core/node_options.h"
#include "agent/pod/project/internal.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "volumes/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between checks of ids that are released, but still in use; doubled. */
#define AGAIN_MS 1000
#define AGAIN_MAX_MS 64000

/* ---- requests ---- */

struct request *request_new(enum request_kind kind, const char *owner, size_t max)
{
    struct request *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->kind = kind;
    snprintf(r->owner, sizeof(r->owner), "%s", owner);
    r->v = calloc(max + 1, sizeof(*r->v));
    if (r->v != NULL)
        return r;
    free(r);
    return NULL;
}

void request_free(struct request *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].path);
        free(r->v[i].volume);
    }
    free(r->v);
    free(r);
}

/* ---- on the pool: taking ---- */

/* True: something is in it. */
static bool pool_stop(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

bool pool_has_content(const char *dir)
{
    bool some = false;

    return presence_is_unknown(fs_list(AT_FDCWD, dir, pool_stop, &some, ERR_IGNORED)) || some;
}

/*
 * A folder with content that has no project is from before an upgrade, or from a time without quotas: giving
 * it one would have to visit each file. One that the table knows had its own: the agent was killed before it
 * was given.
 */
static bool may_take(const struct projects *table, const struct wish *w)
{
    struct stat st;

    switch (presence_of(fs_look_at(AT_FDCWD, w->path, &st, ERR_IGNORED))) {
    case PRESENCE_UNKNOWN:
        return false;
    case PRESENCE_ABSENT:
        return true;
    case PRESENCE_PRESENT:
        break;
    }
    return S_ISDIR(st.st_mode) && st.st_dev == quota_fs_device(w->fs) &&
           (projects_find(table, w->path) != NULL || !pool_has_content(w->path));
}

static enum err_code assign(const char *path, const struct quota_fs *fs, uint32_t id, struct err *e)
{
    fd_auto dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    uint32_t has = 0;
    struct stat st;

    if (dir < 0 || fstat(dir, &st) != 0)
        return err_sys(e, errno, "open %s", path);
    if (st.st_dev != quota_fs_device(fs))
        return err_set(e, ERR_PRECONDITION, "%s is on another file system than the folders of its kind",
                       path);
    if (presence_is_unknown(quota_project_of(path, &has, e)))
        return e->code;
    return has == id ? ERR_OK : quota_assign(dir, id, e);
}

/* The size that a claim asks for. */
static enum err_code limit(const struct wish *w, struct err *e)
{
    const struct quota_limits l = { .hard_bytes = w->limit_bytes };

    return quota_fs_enforces(w->fs) ? quota_set(w->fs, w->id, &l, e) : ERR_OK;
}

/* An emptyDir gets its project before it has its name. */
enum err_code pool_give(const struct request *r, const struct wish *w, struct err *e)
{
    char path[1100];

    snprintf(path, sizeof(path), "%s", w->path);
    if (w->kind == PROJECT_VOLUME && presence_is_absent(fs_look_at(AT_FDCWD, w->path, NULL, ERR_IGNORED))) {
        if (vol_empty_dir_prepare(r->volumes, r->owner, w->volume, path, sizeof(path), e) != ERR_OK)
            return e->code;
    } else if (w->kind != PROJECT_VOLUME &&
               fs_mkdirs(path, w->kind == PROJECT_LAYER ? 0700 : 0755, e) != ERR_OK) {
        return e->code;
    }
    if (assign(path, w->fs, w->id, e) != ERR_OK)
        return e->code;
    return w->kind == PROJECT_CLAIM ? limit(w, e) : ERR_OK;
}

struct taking { /* of all requests together */
    struct projects_wish *v;
    struct wish **of;
    size_t n;
};

static enum err_code taking_begin(struct taking *t, const struct project_node *part, struct err *e)
{
    const struct request *r;
    size_t max = 0;

    TAILQ_FOREACH (r, &part->job, link)
        max += r->n;
    t->v = calloc(max + 1, sizeof(*t->v));
    t->of = calloc(max + 1, sizeof(struct wish *));
    if (t->v == NULL || t->of == NULL)
        return err_nomem(e);
    TAILQ_FOREACH (r, &part->job, link)
        for (size_t i = 0; r->kind == REQUEST_TAKE && i < r->n; i++) {
            if (!may_take(part->table, &r->v[i]))
                continue;
            t->v[t->n] = (struct projects_wish){ .fs = r->v[i].fs, .owner = r->owner, .path = r->v[i].path };
            t->of[t->n++] = &r->v[i];
        }
    return ERR_OK;
}

static void give_all(struct request *r, struct project_node *part)
{
    struct err e = { 0 }, again = { 0 };

    for (size_t i = 0; i < r->n; i++) {
        struct wish *w = &r->v[i];

        if (w->id == 0)
            continue;
        w->over = pool_give(r, w, &e) == ERR_OK;
        if (w->over)
            continue;
        r->e = e;
        ERR_IGNORE(projects_release(part->table, w->fs, w->path, &again)); /* the next start tries again */
    }
}

static void take_all(struct project_node *part)
{
    struct taking t = { 0 };
    struct err e = { 0 };
    struct request *r;

    if (taking_begin(&t, part, &e) == ERR_OK && t.n > 0 &&
        projects_take_all(part->table, t.v, t.n, &e) == ERR_OK)
        for (size_t i = 0; i < t.n; i++)
            t.of[i]->id = t.v[i].id;
    TAILQ_FOREACH (r, &part->job, link)
        if (r->kind == REQUEST_TAKE) {
            r->e = e;
            give_all(r, part);
        }
    free(t.v);
    free(t.of);
}

/* ---- on the pool: the stock ---- */

static void name_all(struct project_node *part)
{
    struct projects_wish *v;
    struct request *r;
    size_t n = 0, max = 0;

    TAILQ_FOREACH (r, &part->job, link)
        max += r->n;
    v = calloc(max + 1, sizeof(*v));
    if (v == NULL)
        return; /* their ids are in the table, and stay until nothing uses them */
    TAILQ_FOREACH (r, &part->job, link)
        for (size_t i = 0; r->kind == REQUEST_NAME && i < r->n; i++)
            if (r->v[i].over)
                v[n++] = (struct projects_wish){
                    .fs = r->v[i].fs, .owner = r->owner, .path = r->v[i].path, .id = r->v[i].id
                };
    r = TAILQ_FIRST(&part->job);
    ERR_IGNORE(projects_name_all(part->table, v, n, &r->e));
    free(v);
}

static void stock_up(struct project_node *part, struct request *r)
{
    for (size_t i = 0; i < part->n_open; i++) {
        struct stock *s = &part->stocked[i];

        if (s->n > 0 && projects_reserve(part->table, part->open[i], s->ids, s->n, &r->e) != ERR_OK)
            s->n = 0;
    }
}

static void stock_all(struct project_node *part)
{
    struct request *r;

    TAILQ_FOREACH (r, &part->job, link)
        if (r->kind == REQUEST_STOCK)
            stock_up(part, r);
        else if (r->last)
            projects_unreserve(part->table);
}

/* ---- on the pool: releasing ---- */

/* A volume that is being set up may have its temporary name; layers and logs have none. */
static void look_what_is_gone(struct request *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct wish *w = &r->v[i];

        if (r->kind == REQUEST_DROP && rmdir(w->path) != 0 && errno != ENOENT) {
            err_sys(&r->e, errno, "remove %s", w->path);
            continue;
        }
        w->over = presence_is_absent(vol_empty_dir_look(w->path, ERR_IGNORED));
    }
}

static void release_all(struct project_node *part)
{
    struct projects_wish *v;
    struct request *r;
    size_t n = 0, max = 0;

    TAILQ_FOREACH (r, &part->job, link)
        max += r->n;
    v = calloc(max + 1, sizeof(*v));
    if (v == NULL)
        return; /* the next start finds them */
    TAILQ_FOREACH (r, &part->job, link) {
        if (r->kind != REQUEST_GONE && r->kind != REQUEST_DROP)
            continue;
        look_what_is_gone(r);
        for (size_t i = 0; i < r->n; i++)
            if (r->v[i].over)
                v[n++] = (struct projects_wish){ .fs = r->v[i].fs, .path = r->v[i].path };
    }
    if (n > 0) {
        struct err e = { 0 };
        r = TAILQ_FIRST(&part->job);
        if (projects_release_all(part->table, v, n, &e) != ERR_OK)
            r->e = e;
    }
    free(v);
}

/* Also frees ids that were still in use when they were released. */
static void sweep(struct project_node *part)
{
    struct request *r;
    bool wanted = part->waiting > 0;

    TAILQ_FOREACH (r, &part->job, link)
        wanted = wanted || r->kind == REQUEST_SWEEP || r->last;
    r = TAILQ_FIRST(&part->job);
    if (!wanted || r == NULL)
        return;
    part->waiting = 0;
    for (size_t i = 0; i < part->n_open; i++) {
        size_t waiting = 0;

        if (projects_sweep(part->table, part->open[i], &waiting, &r->e) == ERR_OK)
            part->waiting += waiting;
    }
}

static bool job_has(const struct project_node *part, enum request_kind a, enum request_kind b)
{
    const struct request *r;

    TAILQ_FOREACH (r, &part->job, link)
        if (r->kind == a || r->kind == b)
            return true;
    return false;
}

/* Takes come first: pods wait for them. */
static enum err_code pool_run(void *arg, struct err *e)
{
    struct project_node *part = arg;
    struct project_task *t;

    (void)e;
    if (job_has(part, REQUEST_TAKE, REQUEST_TAKE))
        take_all(part);
    if (job_has(part, REQUEST_NAME, REQUEST_NAME))
        name_all(part);
    TAILQ_FOREACH (t, &part->job_tasks, link) {
        t->run(t);
        t->ran = true;
    }
    if (job_has(part, REQUEST_GONE, REQUEST_DROP))
        release_all(part);
    stock_all(part);
    sweep(part);
    return ERR_OK;
}

/* ---- on the loop ---- */

static void pool_start(struct node *n);

void pool_stock(struct node *n)
{
    struct project_node *part = project_node(n);
    struct request *r;
    bool low = false;

    for (size_t i = 0; i < part->n_open; i++)
        low = low || part->stock[i].n < STOCK_LOW;
    if (!low || part->stocking || part->table == NULL || n->draining || n->closing)
        return;
    r = request_new(REQUEST_STOCK, "", 0);
    if (r == NULL)
        return;
    part->stocking = true;
    for (size_t i = 0; i < part->n_open; i++) /* read by the pool once the request is its own */
        part->stocked[i].n = STOCK_MAX - part->stock[i].n;
    request_add(n, r);
}

static void stock_came(struct node *n)
{
    struct project_node *part = project_node(n);

    part->stocking = false;
    for (size_t i = 0; i < part->n_open && !n->draining; i++) {
        struct stock *s = &part->stock[i], *more = &part->stocked[i];

        for (size_t k = 0; k < more->n && s->n < STOCK_MAX; k++)
            s->ids[s->n++] = more->ids[k];
    }
}

/* Said when it changes, because a full disk refuses every pod. */
static void note_problem(struct project_node *part, const struct request *r)
{
    if (r->e.code == ERR_OK) {
        if (r->kind == REQUEST_TAKE && r->n > 0)
            part->problem[0] = '\0';
        return;
    }
    if (strncmp(part->problem, r->e.text, sizeof(part->problem) - 1) == 0)
        return;
    snprintf(part->problem, sizeof(part->problem), "%.390s", r->e.text);
    log_warn(r->kind == REQUEST_TAKE ? "cannot give trees of a pod their projects: they are scanned"
                                     : "cannot release projects; will retry",
             F_STR("podUID", r->owner), F_ERR(&r->e));
}

/* The end of all pods waits until their projects are released. */
static bool removes(const struct request *r)
{
    return r->kind == REQUEST_GONE || r->kind == REQUEST_DROP || r->kind == REQUEST_SWEEP;
}

static void request_out(struct node *n, struct request *r)
{
    if (removes(r))
        n->sweeps--;
    request_free(r);
    node_check_idle(n);
}

static void request_over(struct node *n, struct request *r)
{
    struct project_node *part = project_node(n);

    note_problem(part, r);
    if (r->kind == REQUEST_TAKE)
        ask_done(n, r);
    if (r->kind == REQUEST_STOCK)
        stock_came(n);
    for (size_t i = 0; (r->kind == REQUEST_GONE || r->kind == REQUEST_DROP) && i < r->n; i++)
        if (r->v[i].over)
            index_remove(part, r->v[i].path);
    request_out(n, r);
}

static void pool_on_again(uv_timer_t *timer)
{
    struct node *n = timer->data;
    struct request *r = n->closing ? NULL : request_new(REQUEST_SWEEP, "", 0);

    if (r != NULL)
        request_add(n, r);
}

/*
 * XFS takes removed files apart later, and a process may still have one open; nothing reports that it is
 * over. After the last try the next event tries again.
 */
static void sweep_again(struct project_node *part)
{
    if (part->waiting == 0) {
        part->again_ms = 0;
        uv_timer_stop(&part->again);
        return;
    }
    if (uv_is_active((uv_handle_t *)&part->again) || part->again_ms >= AGAIN_MAX_MS)
        return;
    part->again_ms = part->again_ms == 0 ? AGAIN_MS : 2 * part->again_ms;
    uv_timer_start(&part->again, pool_on_again, part->again_ms, 0);
}

static void pool_on_done(struct op *op, const struct err *result)
{
    struct node *n = op->owner;
    struct project_node *part = project_node(n);
    struct requests over = TAILQ_HEAD_INITIALIZER(over);
    struct project_tasks tasks = TAILQ_HEAD_INITIALIZER(tasks);
    struct project_task *t;
    struct request *r;

    (void)result; /* each request has its own */
    part->busy = false;
    TAILQ_CONCAT(&over, &part->job, link);
    TAILQ_CONCAT(&tasks, &part->job_tasks, link);
    while ((r = TAILQ_FIRST(&over)) != NULL) {
        TAILQ_REMOVE(&over, r, link);
        request_over(n, r);
    }
    while ((t = TAILQ_FIRST(&tasks)) != NULL) {
        TAILQ_REMOVE(&tasks, t, link);
        t->done(t, t->ran);
    }
    if (n->closing) {
        pool_cancel(n);
        return;
    }
    sweep_again(part);
    pool_start(n);
}

static void pool_start(struct node *n)
{
    struct project_node *part = project_node(n);

    if (part->busy || (TAILQ_EMPTY(&part->queue) && TAILQ_EMPTY(&part->tasks)))
        return;
    TAILQ_CONCAT(&part->job, &part->queue, link);
    TAILQ_CONCAT(&part->job_tasks, &part->tasks, link);
    part->busy = true;
    work_start(&part->work, "projects", "", pool_run, part, n->o.loop, pool_on_done, n);
}

void request_add(struct node *n, struct request *r)
{
    if (removes(r))
        n->sweeps++;
    if (r->kind == REQUEST_GONE || r->kind == REQUEST_DROP)
        project_node(n)->again_ms = 0;
    if (n->draining && removes(r)) {
        r->last = true;
        memset(project_node(n)->stock, 0, sizeof(project_node(n)->stock));
    }
    TAILQ_INSERT_TAIL(&project_node(n)->queue, r, link);
    pool_start(n);
}

void project_do(struct node *n, struct project_task *t)
{
    t->ran = false;
    TAILQ_INSERT_TAIL(&project_node(n)->tasks, t, link);
    pool_start(n);
}

/* A request in progress runs to its end: node_close() waits for it. */
void pool_cancel(struct node *n)
{
    struct project_node *part = project_node(n);
    struct project_task *t;
    struct request *r;

    uv_timer_stop(&part->again);
    while ((r = TAILQ_FIRST(&part->queue)) != NULL) {
        struct pod *p = pods_by_uid(n, r->owner);

        TAILQ_REMOVE(&part->queue, r, link);
        if (p != NULL && r->kind == REQUEST_TAKE)
            project_pod(p)->pending = false;
        request_out(n, r);
    }
    while ((t = TAILQ_FIRST(&part->tasks)) != NULL) {
        TAILQ_REMOVE(&part->tasks, t, link);
        t->done(t, false);
    }
}

void pool_open(struct node *n)
{
    struct project_node *part = project_node(n);

    TAILQ_INIT(&part->queue);
    TAILQ_INIT(&part->job);
    TAILQ_INIT(&part->tasks);
    TAILQ_INIT(&part->job_tasks);
    uv_timer_init(n->o.loop, &part->again);
    part->again.data = n;
}

void pool_close(struct node *n)
{
    struct project_node *part = project_node(n);

    pool_cancel(n);
    rooms_close_handle(n, (uv_handle_t *)&part->again);
    quota_warn_close(take_ptr(&part->warn), NULL, NULL);
}
