/* SPDX-License-Identifier: Apache-2.0 */
/* Ids whose trees are gone. */
#include "volumes/quota/etc_files.h"
#include "volumes/quota/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Keeps the first error. */
static void note_error(struct err *e, const struct err *why)
{
    if (e->code == ERR_OK)
        *e = *why;
}

static enum err_code result(const struct err *first, const char *doing, struct err *e)
{
    if (first->code == ERR_OK)
        return ERR_OK;
    *e = *first;
    return err_wrap(e, "%s", doing);
}

/* Marks it for removal if its usage is 0; an unreadable one is in use. */
static enum err_code free_if_unused(struct project_entry *x, const struct quota_fs *f, struct err *e)
{
    static const struct quota_limits none = { 0 };
    struct quota_usage u;

    /* XFS gives removed files back in the background, and hurries when it is asked for id 0. */
    ERR_IGNORE(quota_get(f, 0, &u, ERR_IGNORED));
    if (quota_get(f, x->x.id, &u, e) != ERR_OK)
        return e->code;
    if ((u.hard_bytes != 0 || u.soft_bytes != 0 || u.hard_inodes != 0) &&
        quota_set(f, x->x.id, &none, e) != ERR_OK)
        return e->code;
    x->freeing = u.bytes == 0 && u.inodes == 0;
    return ERR_OK;
}

/* The files first: an id that only they have would be in use for ever. */
static enum err_code write_released(struct projects *p, struct err *e)
{
    scoped(etc_files_unlock) struct etc_files *f = NULL;
    struct project_entry *x, *next;
    struct err saved = { 0 };
    bool written = projects_lock_files(p, &f, e) == ERR_OK && projects_write_files(p, f, e) == ERR_OK;

    HASH_ITER (hh, p->ids, x, next) {
        if (x->freeing && written)
            projects_remove(p, x);
        else
            x->freeing = false;
    }
    p->files_due = !written;
    if (projects_save(p, &saved) != ERR_OK)
        note_error(e, &saved);
    return e->code;
}

enum err_code projects_release_all(struct projects *p, const struct projects_wish *w, size_t n, struct err *e)
{
    struct err first = { 0 }, why = { 0 };
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        struct project_entry *x = projects_entry(p, w[i].path);

        if (x == NULL)
            continue;
        any = true;
        projects_mark_released(p, x);
        why = (struct err){ 0 };
        if ((x->x.fs[0] == '\0' || strcmp(x->x.fs, w[i].fs->identity) == 0) &&
            free_if_unused(x, w[i].fs, &why) != ERR_OK)
            note_error(&first, &why);
    }
    why = (struct err){ 0 };
    if (any && write_released(p, &why) != ERR_OK)
        note_error(&first, &why);
    return result(&first, "release projects", e);
}

enum err_code projects_release(struct projects *p, const struct quota_fs *f, const char *path, struct err *e)
{
    const struct projects_wish w = { .fs = f, .owner = "", .path = path };

    return projects_release_all(p, &w, 1, e);
}

/* ---- sweep -----------------------------------------------------------------------------------------------
 */

/* Whether the tree exists. It is absent only if the folder above it is on the file system itself: on a disk
 * that is not mounted it may exist. */
static struct presence look_at_tree(const struct quota_fs *f, const char *path, struct err *e)
{
    char above[4096];
    struct stat st;
    char *slash;

    if (lstat(path, &st) == 0)
        return presence_present();
    snprintf(above, sizeof(above), "%s", path);
    while (errno == ENOENT || errno == ENOTDIR) {
        slash = strrchr(above, '/');
        if (slash == NULL)
            break;
        *(slash == above ? slash + 1 : slash) = '\0';
        if (stat(above, &st) == 0) {
            if (st.st_dev == f->device)
                return presence_absent();
            (void)err_set(e, ERR_PRECONDITION, "%s is on another file system", above);
            return presence_unknown(e);
        }
        if (slash == above)
            break;
    }
    (void)err_sys(e, errno, "stat %s", path);
    return presence_unknown(e);
}

/* An entry of an earlier agent. */
static void sweep_loaded(struct projects *p, const struct quota_fs *f, struct project_entry *x,
                         bool *ret_changed)
{
    struct err why = { 0 };
    struct stat st;

    switch (presence_of(look_at_tree(f, x->tree, &why))) {
    case PRESENCE_UNKNOWN: /* it stays; the next sweep checks again */
        break;
    case PRESENCE_ABSENT:
        projects_mark_released(p, x);
        *ret_changed = true;
        break;
    case PRESENCE_PRESENT:
        if (lstat(x->tree, &st) != 0 || st.st_dev != f->device)
            break;
        x->x.device = f->device;
        if (x->x.fs[0] == '\0') {
            snprintf(x->x.fs, sizeof(x->x.fs), "%s", f->identity);
            *ret_changed = true;
        }
        break;
    }
}

enum err_code projects_sweep(struct projects *p, const struct quota_fs *f, size_t *ret_waiting, struct err *e)
{
    bool changed = p->files_due;
    struct err first = { 0 }, why = { 0 };

    *ret_waiting = 0;
    for (struct project_entry *x = p->ids; x != NULL; x = x->hh.next) {
        if (x->x.fs[0] != '\0' && strcmp(x->x.fs, f->identity) != 0)
            continue;
        if (x->reserved)
            continue;
        if (x->loaded && x->x.path != NULL)
            sweep_loaded(p, f, x, &changed);
        if (x->x.path != NULL)
            continue;
        why = (struct err){ 0 };
        if (free_if_unused(x, f, &why) != ERR_OK)
            note_error(&first, &why);
        changed = changed || x->freeing;
        *ret_waiting += !x->freeing;
    }
    why = (struct err){ 0 };
    if (changed && write_released(p, &why) != ERR_OK)
        note_error(&first, &why);
    return result(&first, "free projects", e);
}
