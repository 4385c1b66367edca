/* SPDX-License-Identifier: Apache-2.0 */
/* Ids for trees. */
#include "base/log.h"
#include "volumes/quota/etc_files.h"
#include "volumes/quota/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define TRIES_IN_ORDER 256 /* kubelet gives up after 128 */
#define TRIES_MAX 4096     /* beyond the first by chance, for a container may use up any numbers in a row */

/* Present: the number is in use. */
static struct presence look_at_id(const struct projects *p, const struct quota_fs *f,
                                  const struct etc_ids *named, uint32_t id, struct err *e)
{
    struct quota_usage u;

    if (projects_by_id(p, 0, id) != NULL || etc_ids_has(named, id))
        return presence_present();
    if (quota_get(f, id, &u, e) != ERR_OK)
        return presence_unknown(e);
    if (u.bytes != 0 || u.inodes != 0 || u.hard_bytes != 0 || u.soft_bytes != 0 || u.hard_inodes != 0)
        return presence_present();
    return presence_absent();
}

static uint32_t next_candidate(struct projects *p, unsigned tries)
{
    uint32_t random = 0;

    if (tries < TRIES_IN_ORDER || getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) {
        if (p->next < QUOTA_FIRST_ID || p->next >= PROJECT_ID_MAX)
            p->next = QUOTA_FIRST_ID;
        return p->next++;
    }
    return QUOTA_FIRST_ID + random % (PROJECT_ID_MAX - QUOTA_FIRST_ID);
}

static enum err_code find_free(struct projects *p, const struct quota_fs *f, const struct etc_ids *named,
                               uint32_t *ret, struct err *e)
{
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        uint32_t id = next_candidate(p, tries);

        switch (presence_of(look_at_id(p, f, named, id, e))) {
        case PRESENCE_UNKNOWN:
            return e->code;
        case PRESENCE_ABSENT:
            *ret = id;
            return ERR_OK;
        case PRESENCE_PRESENT:
            break;
        }
    }
    return err_set(e, ERR_EXHAUSTED, "none of the %d tried project ids is free", TRIES_MAX);
}

/* The entry of a tree that is on the same file system as before. */
static struct project_entry *same_tree(struct projects *p, const struct projects_wish *w)
{
    struct project_entry *x = projects_entry(p, w->path);

    if (x == NULL || (x->x.fs[0] != '\0' && strcmp(x->x.fs, w->fs->identity) != 0))
        return NULL;
    return x;
}

static enum err_code take_one(struct projects *p, struct projects_wish *w, const struct etc_ids *named,
                              struct err *e)
{
    struct project_entry *x = same_tree(p, w), *other;

    if (x != NULL) {
        w->id = x->x.id;
        return ERR_OK;
    }
    if (HASH_COUNT(p->ids) >= PROJECTS_MAX)
        return err_set(e, ERR_EXHAUSTED, "%d folders already have projects", PROJECTS_MAX);
    if (find_free(p, w->fs, named, &w->id, e) != ERR_OK)
        return e->code;
    other = projects_entry(p, w->path);
    if (other != NULL) /* on a disk that was here before */
        projects_mark_released(p, other);
    x = projects_add(p, w->id, w->owner, w->path, w->fs->identity, false);
    if (x == NULL)
        return err_nomem(e);
    x->fresh = true;
    return ERR_OK;
}

static enum err_code take_new(struct projects *p, struct projects_wish *w, size_t n,
                              const struct etc_files *f, struct err *e)
{
    struct etc_ids named = { 0 };
    enum err_code code = ERR_OK;

    if (f != NULL)
        for (int kind = 0; kind < 2 && code == ERR_OK; kind++)
            code = etc_ids_add(&named, kind, etc_files_text(f, kind), e);
    etc_ids_sort(&named);
    for (size_t i = 0; i < n && code == ERR_OK; i++)
        code = take_one(p, &w[i], &named, e);
    free(named.v);
    return code;
}

static void forget_fresh(struct projects *p, bool written)
{
    struct project_entry *x, *next;

    HASH_ITER (hh, p->ids, x, next) {
        x->freeing = false;
        if (x->fresh && written)
            projects_remove(p, x);
    }
}

/* A take that failed: its ids leave the files again. If even that fails, they are released ones that the next
 * sweep frees. Their entries in the table on the disk do no harm: no tree has such an id. */
static void take_back(struct projects *p, struct etc_files *f)
{
    struct err e = { 0 };
    bool any = false;

    for (struct project_entry *x = p->ids; x != NULL; x = x->hh.next) {
        if (!x->fresh)
            continue;
        any = x->freeing = true;
        projects_mark_released(p, x);
    }
    if (!any)
        return;
    forget_fresh(p, projects_write_files(p, f, &e) == ERR_OK);
    e = (struct err){ 0 };
    if (projects_save(p, &e) != ERR_OK)
        log_debug("quotas: ids of a failed start stay in the table", F_ERR(&e));
}

/* The table first: a tree has its id only after both. */
static enum err_code take_and_write(struct projects *p, struct projects_wish *w, size_t n, struct err *e)
{
    scoped(etc_files_unlock) struct etc_files *f = NULL;
    enum err_code code = projects_lock_files(p, &f, e);

    if (code != ERR_OK)
        return code;
    code = take_new(p, w, n, f, e);
    if (code == ERR_OK)
        code = projects_save(p, e);
    if (code == ERR_OK)
        code = projects_write_files(p, f, e);
    if (code != ERR_OK)
        take_back(p, f);
    for (struct project_entry *x = p->ids; x != NULL; x = x->hh.next)
        x->fresh = false;
    return code;
}

/* ---- ids for future trees ---- */

static enum err_code reserve_one(struct projects *p, const struct quota_fs *f, const struct etc_ids *named,
                                 uint32_t *ret, struct err *e)
{
    struct project_entry *x;

    if (HASH_COUNT(p->ids) >= PROJECTS_MAX)
        return err_set(e, ERR_EXHAUSTED, "%d folders already have projects", PROJECTS_MAX);
    if (find_free(p, f, named, ret, e) != ERR_OK)
        return e->code;
    x = projects_add(p, *ret, "", p->state_file, f->identity, true);
    if (x == NULL)
        return err_nomem(e);
    x->fresh = x->reserved = true;
    return ERR_OK;
}

enum err_code projects_reserve(struct projects *p, const struct quota_fs *f, uint32_t *ret_ids, size_t n,
                               struct err *e)
{
    scoped(etc_files_unlock) struct etc_files *files = NULL;
    struct etc_ids named = { 0 };
    enum err_code code = projects_lock_files(p, &files, e);

    if (files != NULL)
        for (int kind = 0; kind < 2 && code == ERR_OK; kind++)
            code = etc_ids_add(&named, kind, etc_files_text(files, kind), e);
    etc_ids_sort(&named);
    for (size_t i = 0; i < n && code == ERR_OK; i++)
        code = reserve_one(p, f, &named, &ret_ids[i], e);
    free(named.v);
    if (code == ERR_OK)
        code = projects_save(p, e);
    if (code == ERR_OK)
        code = projects_write_files(p, files, e);
    if (code != ERR_OK)
        take_back(p, files);
    for (struct project_entry *x = p->ids; x != NULL; x = x->hh.next) {
        x->reserved = x->reserved && (code == ERR_OK || !x->fresh);
        x->fresh = false;
    }
    return code == ERR_OK ? ERR_OK : err_wrap(e, "reserve projects");
}

enum err_code projects_name_all(struct projects *p, const struct projects_wish *w, size_t n, struct err *e)
{
    scoped(etc_files_unlock) struct etc_files *files = NULL;
    bool all = true;

    for (size_t i = 0; i < n; i++) {
        struct project_entry *x, *other = projects_entry(p, w[i].path);

        HASH_FIND(hh, p->ids, &w[i].id, sizeof(w[i].id), x);
        if (x == NULL || !x->reserved || projects_check_path(w[i].path, ERR_IGNORED) != ERR_OK)
            continue; /* it stays released */
        x->reserved = false;
        x->x.device = w[i].fs->device;
        if (other != NULL) /* the tree before it */
            projects_mark_released(p, other);
        all = projects_set_tree(p, x, w[i].owner, w[i].path) && all;
    }
    p->files_due = true; /* until they are written */
    if (projects_save(p, e) != ERR_OK || projects_lock_files(p, &files, e) != ERR_OK ||
        projects_write_files(p, files, e) != ERR_OK)
        return err_wrap(e, "name projects");
    return all ? ERR_OK : err_nomem(e);
}

void projects_unreserve(struct projects *p)
{
    for (struct project_entry *x = p->ids; x != NULL; x = x->hh.next)
        x->reserved = false;
}

/* Notes where known trees are; true: one is new, or the table changes. */
static bool note_known(struct projects *p, struct projects_wish *w, size_t n)
{
    bool changed = false;

    for (size_t i = 0; i < n; i++) {
        struct project_entry *x = same_tree(p, &w[i]);

        if (x == NULL) {
            changed = true;
            continue;
        }
        changed = changed || strcmp(x->x.owner, w[i].owner) != 0 || x->x.fs[0] == '\0';
        snprintf(x->x.owner, sizeof(x->x.owner), "%s", w[i].owner);
        snprintf(x->x.fs, sizeof(x->x.fs), "%s", w[i].fs->identity);
        x->x.device = w[i].fs->device;
        x->loaded = false;
        w[i].id = x->x.id;
    }
    return changed;
}

enum err_code projects_take_all(struct projects *p, struct projects_wish *w, size_t n, struct err *e)
{
    struct project unused;

    for (size_t i = 0; i < n; i++) {
        if (projects_check_path(w[i].path, e) != ERR_OK)
            return err_wrap(e, "project");
        if (strlen(w[i].owner) >= sizeof(unused.owner))
            return err_set(e, ERR_INVALID, "project of %s: the owner's name is too long", w[i].path);
    }
    if ((note_known(p, w, n) || p->files_due) && take_and_write(p, w, n, e) != ERR_OK)
        return err_wrap(e, "take projects");
    (void)note_known(p, w, n);
    return ERR_OK;
}

enum err_code projects_take(struct projects *p, const struct quota_fs *f, const char *owner, const char *path,
                            uint32_t *ret, struct err *e)
{
    struct projects_wish w = { .fs = f, .owner = owner, .path = path };

    if (projects_take_all(p, &w, 1, e) != ERR_OK)
        return e->code;
    *ret = w.id;
    return ERR_OK;
}
