/* SPDX-License-Identifier: Apache-2.0 */
/* The table on the disk:
 *     {"version": 1, "projects": [{"id": 1048577, "owner": "<uid>", "path": "/...", "fs": "xfs-<uuid>"}]}
 * and "released": true for one whose tree is gone and whose id is not free yet. */
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"
#include "volumes/quota/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MAX (64 << 20) /* PROJECTS_MAX trees with paths of a kilobyte */

static void json_decref_p(json_t **j)
{
    json_decref(*j);
}
#define json_auto_ref __attribute__((cleanup(json_decref_p))) json_t

static enum err_code damaged(struct err *e, size_t i, const char *why)
{
    return err_set(e, ERR_INVALID, "projects[%zu]: %s", i, why);
}

static enum err_code parse_entry(struct projects *p, const json_t *entry, size_t i, struct err *e)
{
    json_int_t id = json_int(entry, "id", 0);
    const char *owner = json_str(entry, "owner"), *path = json_str(entry, "path"),
               *fs = json_str(entry, "fs");
    struct project_entry *x;
    bool released = json_flag(entry, "released");

    if (id < 1 || id > INT32_MAX)
        return damaged(e, i, "id is not between 1 and 2147483647");
    if (projects_by_id(p, 0, (uint32_t)id) != NULL)
        return damaged(e, i, "its id is there twice");
    if (path == NULL || projects_check_path(path, ERR_IGNORED) != ERR_OK)
        return damaged(e, i, "path is not an absolute path");
    if (!released && projects_entry(p, path) != NULL)
        return damaged(e, i, "its path is there twice");
    if ((owner != NULL && strlen(owner) >= sizeof(x->x.owner)) ||
        (fs != NULL && strlen(fs) >= sizeof(x->x.fs)))
        return damaged(e, i, "owner or fs is too long");
    x = projects_add(p, (uint32_t)id, owner == NULL ? "" : owner, path, fs == NULL ? "" : fs, released);
    if (x == NULL)
        return err_nomem(e);
    x->loaded = true;
    return ERR_OK;
}

enum err_code projects_parse(struct projects *p, const char *text, size_t n, struct err *e)
{
    json_auto_ref *root = NULL;
    json_t *list;

    if (json_parse(text, n, TABLE_MAX, &root, "table of projects", e) != ERR_OK)
        return e->code;
    list = json_object_get(root, "projects");
    if (json_int(root, "version", 0) != 1 || !json_is_array(list))
        return err_set(e, ERR_INVALID, "table of projects: not of version 1");
    if (json_array_size(list) > PROJECTS_MAX)
        return err_set(e, ERR_INVALID, "table of projects: more than %d entries", PROJECTS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (parse_entry(p, json_array_get(list, i), i, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static void set_aside(const struct projects *p, const struct err *why)
{
    const char *slash = strrchr(p->state_file, '/');
    str_auto folder =
        slash == NULL ? strdup(".") : strndup(p->state_file, (size_t)(slash - p->state_file) + 1);
    fd_auto fd = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char away[DAMAGED_FILE_NAME_SIZE] = "";
    struct err e = { 0 };

    if (damaged_file_set_aside(fd, slash == NULL ? p->state_file : slash + 1, away, &e) == ERR_OK)
        log_warn("quotas: set aside a damaged table of projects", F_STR("file", away), F_ERR(why));
    else
        log_error("quotas: cannot set aside a damaged table of projects", F_STR("file", p->state_file),
                  F_STR("damage", why->text), F_ERR(&e));
}

enum err_code projects_load(struct projects *p, bool *ret_damaged, struct err *e)
{
    str_auto text = NULL;
    size_t n = 0;

    *ret_damaged = false;
    quota_replace_clean(p->state_file);
    switch (presence_of(fs_read_if_there(AT_FDCWD, p->state_file, TABLE_MAX, &text, &n, e))) {
    case PRESENCE_UNKNOWN:
        if (e->sys != 0) /* else it is too long */
            return e->code;
        break;
    case PRESENCE_ABSENT:
        return ERR_OK;
    case PRESENCE_PRESENT:
        if (projects_parse(p, text, n, e) == ERR_OK)
            return ERR_OK;
        if (err_is_shortage(e))
            return e->code;
        break;
    }
    set_aside(p, e);
    *e = (struct err){ 0 };
    projects_clear(p);
    *ret_damaged = true;
    return ERR_OK;
}

static json_t *entry_json(const struct project_entry *x)
{
    json_t *j = json_pack("{s:I}", "id", (json_int_t)x->x.id);

    if (j != NULL && json_put_str(j, "owner", x->x.owner) && json_put_str(j, "path", x->tree) &&
        json_put_str(j, "fs", x->x.fs) &&
        (x->x.path != NULL || json_object_set_new(j, "released", json_true()) == 0))
        return j;
    json_decref(j);
    return NULL;
}

enum err_code projects_save(const struct projects *p, struct err *e)
{
    json_auto_ref *root = json_pack("{s:i,s:[]}", "version", 1, "projects");
    json_t *list = json_object_get(root, "projects");
    str_auto text = NULL;
    bool replaced;

    for (const struct project_entry *x = p->ids; x != NULL; x = x->hh.next)
        if (json_array_append_new(list, entry_json(x)) != 0)
            return err_nomem(e);
    text = root == NULL ? NULL : json_text(root);
    if (text == NULL)
        return err_nomem(e);
    return quota_replace_file(p->state_file, text, strlen(text), 0600, true, &replaced, e);
}
