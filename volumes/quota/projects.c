/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/quota/projects.h"

#include "volumes/quota/etc_files.h"
#include "volumes/quota/internal.h"

#include <stdlib.h>
#include <string.h>

static bool keeps_files(const struct projects *p)
{
    return p->projects_file[0] != '\0' && p->projid_file[0] != '\0';
}

/* ---- open ------------------------------------------------------------------------------------------------
 */

static enum err_code on_line_of_ours(uint32_t id, const char *path, void *arg, struct err *e)
{
    struct projects *p = arg;
    struct project_entry *x;

    if (id < 1 || id > PROJECT_ID_MAX || projects_check_path(path, ERR_IGNORED) != ERR_OK ||
        projects_by_id(p, 0, id) != NULL || projects_entry(p, path) != NULL ||
        HASH_COUNT(p->ids) >= PROJECTS_MAX)
        return ERR_OK;
    x = projects_add(p, id, "", path, "", false);
    if (x == NULL)
        return err_nomem(e);
    x->loaded = true;
    return ERR_OK;
}

/* Entries of the lost table about trees that still exist. */
static enum err_code recover(struct projects *p, struct err *e)
{
    scoped(etc_files_unlock) struct etc_files *f = NULL;

    if (!keeps_files(p))
        return ERR_OK;
    if (etc_files_lock(&f, p->projects_file, p->projid_file, e) != ERR_OK)
        return e->code;
    return etc_each_of_ours(etc_files_text(f, ETC_PROJECTS), etc_files_text(f, ETC_PROJID), on_line_of_ours,
                            p, e);
}

enum err_code projects_open(struct projects **ret, const struct projects_options *o, struct err *e)
{
    scoped(projects_close) struct projects *p = calloc(1, sizeof(*p));
    bool damaged;

    if (p == NULL)
        return err_nomem(e);
    p->state_file = strdup(o->state_file);
    p->projects_file = strdup(o->projects_file);
    p->projid_file = strdup(o->projid_file);
    p->next = QUOTA_FIRST_ID;
    p->files_due = true;
    if (p->state_file == NULL || p->projects_file == NULL || p->projid_file == NULL)
        return err_nomem(e);
    if (projects_load(p, &damaged, e) != ERR_OK)
        return err_wrap(e, "table of projects");
    if (damaged && (recover(p, e) != ERR_OK || projects_save(p, e) != ERR_OK))
        return err_wrap(e, "begin a new table of projects");
    *ret = take_ptr(&p);
    return ERR_OK;
}

void projects_close(struct projects *p)
{
    if (p == NULL)
        return;
    projects_clear(p);
    free(p->state_file);
    free(p->projects_file);
    free(p->projid_file);
    free(p);
}

/* ---- the files of /etc -----------------------------------------------------------------------------------
 */

struct edits {
    struct etc_lines drop[2], keep[2];
};

static void edits_done(struct edits *x)
{
    for (int kind = 0; kind < 2; kind++) {
        etc_lines_done(&x->drop[kind]);
        etc_lines_done(&x->keep[kind]);
    }
}

/* A tree that is gone has no line in /etc/projects; an id that is not free has one in /etc/projid. */
static enum err_code collect_edits(const struct projects *p, struct edits *ret, struct err *e)
{
    for (const struct project_entry *x = p->ids; x != NULL; x = x->hh.next) {
        struct etc_lines *tree = x->x.path == NULL ? ret->drop : ret->keep;
        struct etc_lines *id = x->freeing ? ret->drop : ret->keep;

        if (etc_lines_add(&tree[ETC_PROJECTS], ETC_PROJECTS, x->x.id, x->tree, e) != ERR_OK ||
            etc_lines_add(&id[ETC_PROJID], ETC_PROJID, x->x.id, NULL, e) != ERR_OK)
            return e->code;
    }
    for (int kind = 0; kind < 2; kind++) {
        etc_lines_sort(&ret->drop[kind]);
        etc_lines_sort(&ret->keep[kind]);
    }
    return ERR_OK;
}

enum err_code projects_write_files(struct projects *p, struct etc_files *f, struct err *e)
{
    struct edits edits = { 0 };
    enum err_code code = ERR_OK;

    if (f != NULL) {
        code = collect_edits(p, &edits, e);
        if (code == ERR_OK)
            code = etc_files_edit(f, edits.drop, edits.keep, e);
        edits_done(&edits);
    }
    p->files_due = code != ERR_OK;
    return code;
}

enum err_code projects_lock_files(const struct projects *p, struct etc_files **ret, struct err *e)
{
    *ret = NULL;
    return keeps_files(p) ? etc_files_lock(ret, p->projects_file, p->projid_file, e) : ERR_OK;
}
