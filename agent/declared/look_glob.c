/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths: like glob(3), but errors are distinguished from "no match", and the folders to watch are
 * reported. */
#include "agent/declared/look_internal.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define INSIDE_LEVELS 2 /* /dev/snd/by-id; deeper folders do not hold the nodes of one device */

struct walk {
    struct looker *l;
    enum err_code (*hit)(struct looker *l, const char *path, struct err *e);
    char path[PATH_MAX]; /* "" is the root */
};

static const char *or_root(const char *path)
{
    return path[0] != '\0' ? path : "/";
}

struct names {
    const char *pattern; /* NULL: all */
    struct strs v;
    bool no_memory;
};

static bool take_name(const char *name, void *arg)
{
    struct names *n = arg;

    if (n->pattern == NULL || fnmatch(n->pattern, name, FNM_PERIOD | FNM_NOESCAPE) == 0)
        n->no_memory = !strs_add(&n->v, name) || n->no_memory;
    return !n->no_memory;
}

/* Sorted; empty if the folder does not exist. */
static enum err_code list_names(const char *dir, struct names *n, struct err *e)
{
    struct presence found = fs_list(AT_FDCWD, dir, take_name, n, e);

    if (presence_is_unknown(found))
        return e->code;
    if (n->no_memory)
        return err_nomem(e);
    strs_sort(&n->v);
    return ERR_OK;
}

/* Whether there is a folder, or a link to one. */
static enum err_code is_folder(const char *path, bool *ret, struct err *e)
{
    struct stat st;

    errno = 0;
    *ret = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (*ret || errno == 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return ERR_OK;
    return err_sys(e, errno, "stat %s", path);
}

static enum err_code walk_on(struct walk *w, const char *rest, struct err *e);

/* Appends a name to the path, continues there, and removes the name again. *ret_there: `rest` follows, and
 * the path is a folder. */
static enum err_code walk_into(struct walk *w, const char *name, const char *rest, bool *ret_there,
                               struct err *e)
{
    size_t n = strlen(w->path);
    enum err_code code = ERR_OK;

    *ret_there = false;
    if (n + 1 + strlen(name) >= sizeof(w->path))
        return ERR_OK; /* too long for the kernel */
    w->path[n] = '/';
    strcpy(w->path + n + 1, name);
    if (rest[0] != '\0')
        code = is_folder(w->path, ret_there, e);
    if (code == ERR_OK && (rest[0] == '\0' || *ret_there))
        code = rest[0] == '\0' ? w->hit(w->l, w->path, e) : walk_on(w, rest, e);
    w->path[n] = '\0';
    return code;
}

static enum err_code walk_pattern(struct walk *w, const char *part, const char *rest, struct err *e)
{
    struct names n = { .pattern = part };
    enum err_code code;
    bool there;

    look_watch(w->l, or_root(w->path), part);
    code = list_names(or_root(w->path), &n, e);
    for (size_t i = 0; i < n.v.n && code == ERR_OK; i++)
        code = walk_into(w, n.v.v[i], rest, &there, e);
    strs_done(&n.v);
    return code;
}

/* The folder is watched if a change of this name in it matters: if the name is the pattern's last, or is not
 * a folder yet. */
static enum err_code walk_literal(struct walk *w, const char *part, const char *rest, struct err *e)
{
    bool there = false;
    enum err_code code = walk_into(w, part, rest, &there, e);

    if (!there)
        look_watch(w->l, or_root(w->path), part);
    return code;
}

static enum err_code walk_on(struct walk *w, const char *rest, struct err *e)
{
    size_t n;
    str_auto part = NULL;

    rest += strspn(rest, "/");
    n = strcspn(rest, "/");
    part = strndup(rest, n);
    if (part == NULL)
        return err_nomem(e);
    rest += n;
    return strpbrk(part, "*?[") != NULL ? walk_pattern(w, part, rest, e) : walk_literal(w, part, rest, e);
}

enum err_code look_glob(struct looker *l, const char *pattern,
                        enum err_code (*hit)(struct looker *l, const char *path, struct err *e),
                        struct err *e)
{
    struct walk w = { .l = l, .hit = hit };

    return walk_on(&w, pattern, e);
}

/* ---- folders of nodes ---- */

static enum err_code inside_of(struct looker *l, const char *dir, const char *below, int level,
                               struct strs *ret, struct err *e)
{
    str_auto path = below[0] != '\0' ? str_printf("%s/%s", dir, below) : strdup(dir);
    struct names n = { 0 };
    enum err_code code;

    if (path == NULL)
        return err_nomem(e);
    look_watch(l, path, "*");
    code = list_names(path, &n, e);
    for (size_t i = 0; i < n.v.n && code == ERR_OK && ret->n < LOOK_INSIDE_MAX; i++) {
        str_auto name = below[0] != '\0' ? str_printf("%s/%s", below, n.v.v[i]) : strdup(n.v.v[i]);
        str_auto full = name != NULL ? str_printf("%s/%s", dir, name) : NULL;
        struct presence found;
        struct stat st;

        if (full == NULL) {
            code = err_nomem(e);
            break;
        }
        found = fs_look_at(AT_FDCWD, full, &st, e);
        if (presence_is_unknown(found)) {
            code = e->code;
            break;
        }
        if (presence_is_absent(found))
            continue;
        if (S_ISDIR(st.st_mode) && level < INSIDE_LEVELS)
            code = inside_of(l, dir, name, level + 1, ret, e);
        else if ((S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) && !strs_add(ret, name))
            code = err_nomem(e);
    }
    strs_done(&n.v);
    return code;
}

enum err_code look_inside(struct looker *l, const char *dir, struct strs *ret, struct err *e)
{
    return inside_of(l, dir, "", 1, ret, e);
}
