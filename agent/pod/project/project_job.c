/* SPDX-License-Identifier: Apache-2.0 */
/* One job on the table of ids, on the pool: the requests of the queue that waited when it began. It shares
 * the syncs of the disk among them. */
#include "agent/pod/project/internal.h"
#include "base/files/fs.h"
#include "volumes/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- taking ---- */

/* True: something is in it. */
static bool job_stop(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

static bool tree_has_content(const char *dir)
{
    bool some = false;

    return presence_is_unknown(fs_list(AT_FDCWD, dir, job_stop, &some, ERR_IGNORED)) || some;
}

/* A tree may be missing, or be a folder. False: it is something else, or unknown. */
static bool tree_state(const char *path, bool *ret_exists, dev_t *ret_device)
{
    struct stat st;
    struct presence found = fs_look_at(AT_FDCWD, path, &st, ERR_IGNORED);

    *ret_exists = !presence_is_absent(found);
    if (presence_is_unknown(found))
        return false;
    *ret_device = *ret_exists ? st.st_dev : 0;
    return !*ret_exists || S_ISDIR(st.st_mode);
}

bool tree_is_new(const char *path)
{
    bool exists;
    dev_t device;

    return tree_state(path, &exists, &device) && (!exists || !tree_has_content(path));
}

/*
 * A folder with content that has no project is from before an upgrade, or from a time without quotas: giving
 * it one would have to visit each file. One that the table knows had its own: the agent was killed before it
 * was given.
 */
static bool may_take(const struct projects *table, const struct wish *w)
{
    bool exists;
    dev_t device;

    if (!tree_state(w->path, &exists, &device))
        return false;
    return !exists || (device == quota_fs_device(w->fs) &&
                       (projects_find(table, w->path) != NULL || !tree_has_content(w->path)));
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
enum err_code tree_give(const struct request *r, const struct wish *w, struct err *e)
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

/* Trees of all requests together. */
static size_t trees_of_job(const struct project_node *part)
{
    const struct request *r;
    size_t n = 0;

    TAILQ_FOREACH (r, &part->job, link)
        n += r->n;
    return n;
}

struct taking { /* of all requests together */
    struct projects_wish *v;
    struct wish **of;
    size_t n;
};

static enum err_code taking_begin(struct taking *t, const struct project_node *part, struct err *e)
{
    const size_t max = trees_of_job(part);
    const struct request *r;

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
        w->over = tree_give(r, w, &e) == ERR_OK;
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

/* ---- the stock ---- */

static void name_all(struct project_node *part)
{
    struct projects_wish *v = calloc(trees_of_job(part) + 1, sizeof(*v));
    struct request *r;
    size_t n = 0;

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

/* ---- releasing ---- */

/* A volume that is being set up may have its temporary name; layers and logs have none. */
static void find_gone(struct request *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct wish *w = &r->v[i];

        if (r->kind == REQUEST_DROP && rmdir(w->path) != 0 && errno != ENOENT) {
            err_sys(&r->e, errno, "remove %s", w->path);
            continue;
        }
        w->over = presence_is_absent(vol_empty_dir_exists(w->path, ERR_IGNORED));
    }
}

static void release_all(struct project_node *part)
{
    struct projects_wish *v = calloc(trees_of_job(part) + 1, sizeof(*v));
    struct request *r;
    size_t n = 0;

    if (v == NULL)
        return; /* the next start finds them */
    TAILQ_FOREACH (r, &part->job, link) {
        if (r->kind != REQUEST_GONE && r->kind != REQUEST_DROP)
            continue;
        find_gone(r);
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

/* ---- the job ---- */

static bool job_has(const struct project_node *part, enum request_kind a, enum request_kind b)
{
    const struct request *r;

    TAILQ_FOREACH (r, &part->job, link)
        if (r->kind == a || r->kind == b)
            return true;
    return false;
}

/* Takes come first: pods wait for them. */
enum err_code job_run(void *arg, struct err *e)
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
