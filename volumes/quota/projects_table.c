/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/quota/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 4096

enum err_code projects_check_path(const char *path, struct err *e)
{
    size_t n = strlen(path);

    if (path[0] != '/' || n < 2 || n >= PATH_SIZE)
        return err_set(e, ERR_INVALID, "\"%.100s\" is not an absolute path of at most %d bytes", path,
                       PATH_SIZE - 1);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)path[i] < ' ' || path[i] == 0x7f)
            return err_set(e, ERR_INVALID, "a path has a control character, which /etc/projects cannot hold");
    return ERR_OK;
}

static void free_entry(struct project_entry *x)
{
    free(x->tree);
    free(x);
}

struct project_entry *projects_add(struct projects *p, uint32_t id, const char *owner, const char *tree,
                                   const char *fs, bool released)
{
    struct project_entry *x = calloc(1, sizeof(*x));

    if (x == NULL || (x->tree = strdup(tree)) == NULL) {
        free(x);
        return NULL;
    }
    x->x.id = id;
    snprintf(x->x.owner, sizeof(x->x.owner), "%s", owner);
    snprintf(x->x.fs, sizeof(x->x.fs), "%s", fs);
    HASH_ADD(hh, p->ids, x.id, sizeof(x->x.id), x);
    if (x->hh.tbl == NULL) {
        free_entry(x);
        return NULL;
    }
    if (released)
        return x;
    x->x.path = x->tree;
    HASH_ADD_KEYPTR(by_path, p->paths, x->tree, strlen(x->tree), x);
    if (x->by_path.tbl == NULL) {
        HASH_DELETE(hh, p->ids, x);
        free_entry(x);
        return NULL;
    }
    return x;
}

bool projects_set_tree(struct projects *p, struct project_entry *x, const char *owner, const char *tree)
{
    char *copy = strdup(tree);

    if (copy == NULL)
        return false;
    free(x->tree);
    x->tree = x->x.path = copy;
    snprintf(x->x.owner, sizeof(x->x.owner), "%s", owner);
    HASH_ADD_KEYPTR(by_path, p->paths, x->tree, strlen(x->tree), x);
    if (x->by_path.tbl != NULL)
        return true;
    x->x.path = NULL;
    return false;
}

void projects_mark_released(struct projects *p, struct project_entry *x)
{
    if (x->x.path != NULL)
        HASH_DELETE(by_path, p->paths, x);
    x->x.path = NULL;
}

void projects_remove(struct projects *p, struct project_entry *x)
{
    projects_mark_released(p, x);
    HASH_DELETE(hh, p->ids, x);
    free_entry(x);
}

void projects_clear(struct projects *p)
{
    while (p->ids != NULL)
        projects_remove(p, p->ids);
}

struct project_entry *projects_entry(const struct projects *p, const char *path)
{
    struct project_entry *x = NULL;

    HASH_FIND(by_path, p->paths, path, strlen(path), x);
    return x;
}

const struct project *projects_find(const struct projects *p, const char *path)
{
    const struct project_entry *x = projects_entry(p, path);

    return x == NULL ? NULL : &x->x;
}

const struct project *projects_by_id(const struct projects *p, dev_t device, uint32_t id)
{
    const struct project_entry *x = NULL;

    HASH_FIND(hh, p->ids, &id, sizeof(id), x);
    return x == NULL || (device != 0 && x->x.device != 0 && x->x.device != device) ? NULL : &x->x;
}

void projects_each(const struct projects *p, void (*fn)(const struct project *x, void *arg), void *arg)
{
    for (const struct project_entry *x = p->ids; x != NULL; x = x->hh.next)
        fn(&x->x, arg);
}
