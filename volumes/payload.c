/* SPDX-License-Identifier: Apache-2.0 */
/* payload - checks and sorts a writer's list of files before anything is written. */
#include "base/files/fs.h"
#include "volumes/internal.h"

#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT 4096 /* kubelet's; the kernel's PATH_MAX */
#define NAME_LIMIT 255

static enum err_code vol_payload_refuse(const char *path, const char *why, struct err *e)
{
    return err_set(e, ERR_INVALID, "volume file \"%.256s\": %s", path, why);
}

/* A copy of the path without empty and "." elements. */
static enum err_code normalise(const char *path, char **ret, struct err *e)
{
    size_t n = strlen(path);

    if (n == 0)
        return vol_payload_refuse(path, "path is empty", e);
    if (path[0] == '/')
        return vol_payload_refuse(path, "path is absolute", e);
    if (n > PATH_LIMIT)
        return vol_payload_refuse(path, "path is longer than 4096 bytes", e);
    str_auto clean = strdup(path);
    if (clean == NULL)
        return err_nomem(e);
    fs_path_clean(clean);
    for (const char *p = clean; *p != '\0'; p += *p == '/') {
        size_t k = strcspn(p, "/");
        if (k > NAME_LIMIT)
            return vol_payload_refuse(path, "a name in it is longer than 255 bytes", e);
        if (k == 2 && p[0] == '.' && p[1] == '.')
            return vol_payload_refuse(path, "path leaves the volume", e);
        p += k;
    }
    if (strncmp(clean, "..", 2) == 0) /* "..data" and the generations are ours */
        return vol_payload_refuse(path, "must not start with \"..\"", e);
    if (clean[0] == '\0')
        return vol_payload_refuse(path, "path is the volume itself", e);
    *ret = take_ptr(&clean);
    return ERR_OK;
}

static int by_path_then_newest(const void *a, const void *b)
{
    const struct vol_entry *x = a, *y = b;
    int c = strcmp(x->path, y->path);

    return c != 0 ? c : (x->seq < y->seq) - (x->seq > y->seq);
}

static int find_path(const void *key, const void *entry)
{
    return strcmp(key, ((const struct vol_entry *)entry)->path);
}

static void drop_overwritten(struct vol_plan *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (kept > 0 && strcmp(p->v[kept - 1].path, p->v[i].path) == 0)
            free(p->v[i].path);
        else
            p->v[kept++] = p->v[i];
    }
    p->n = kept;
}

struct dir_check {
    struct vol_plan *plan;
    const struct vol_entry *entry;
    struct err *e;
};

static int count_dir(const char *dir, void *arg)
{
    struct dir_check *c = arg;

    if (bsearch(dir, c->plan->v, c->plan->n, sizeof(*c->plan->v), find_path) != NULL) {
        err_set(c->e, ERR_INVALID,
                "volume file \"%.160s\": \"%.160s\" is a file of the same volume, not a folder",
                c->entry->path, dir);
        return -1;
    }
    c->plan->n_dirs++;
    return 0;
}

enum err_code vol_plan_make(struct vol_plan *ret, const struct vol_file *files, size_t n, struct err *e)
{
    struct vol_plan p = { 0 };

    if (n > 0 && (p.v = calloc(n, sizeof(*p.v))) == NULL)
        return err_nomem(e);
    for (; p.n < n; p.n++) {
        const struct vol_file *f = &files[p.n];
        p.v[p.n] = (struct vol_entry){ .file = f, .seq = p.n };
        if (normalise(f->path, &p.v[p.n].path, e) != ERR_OK)
            break;
        if ((f->mode & ~(mode_t)0777) != 0) {
            /* A set-user-ID file named by a pod could be run by every user with access to the volume. */
            p.n++;
            err_set(e, ERR_INVALID, "volume file \"%.256s\": mode %#o is not between 0 and 0777", f->path,
                    (unsigned)f->mode);
            break;
        }
    }
    if (e->code == ERR_OK && p.n > 0) {
        qsort(p.v, p.n, sizeof(*p.v), by_path_then_newest);
        drop_overwritten(&p);
        for (size_t i = 0; i < p.n; i++) {
            struct dir_check c = { .plan = &p, .entry = &p.v[i], .e = e };
            if (vol_plan_each_new_dir(&p, i, count_dir, &c) != 0)
                break;
        }
    }
    if (e->code != ERR_OK) {
        vol_plan_done(&p);
        return e->code;
    }
    *ret = p;
    return ERR_OK;
}

void vol_plan_done(struct vol_plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].path);
    free(p->v);
    *p = (struct vol_plan){ 0 };
}

/* Paths below one folder are adjacent, so comparing with the neighbour is enough. */
int vol_plan_each_new_dir(const struct vol_plan *p, size_t i, int (*fn)(const char *dir, void *arg),
                          void *arg)
{
    const char *path = p->v[i].path;
    const char *before = i > 0 ? p->v[i - 1].path : "";
    char dir[PATH_LIMIT + 1];

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - path);
        if (strncmp(before, path, n + 1) == 0)
            continue;
        memcpy(dir, path, n);
        dir[n] = '\0';
        int rc = fn(dir, arg);
        if (rc != 0)
            return rc;
    }
    return 0;
}

bool vol_plan_top(const struct vol_plan *p, size_t i, char ret[256])
{
    const char *path = p->v[i].path;
    size_t n = strcspn(path, "/");

    memcpy(ret, path, n);
    ret[n] = '\0';
    return i == 0 || strncmp(p->v[i - 1].path, path, n) != 0 || strcspn(p->v[i - 1].path, "/") != n;
}

bool vol_plan_has_top(const struct vol_plan *p, const char *name)
{
    size_t low = 0, high = p->n, n = strlen(name);

    while (low < high) { /* the first path not before `name` */
        size_t middle = (low + high) / 2;
        if (strcmp(p->v[middle].path, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    /* "a-c" may be between "a" and "a/b". */
    for (; low < p->n && strncmp(p->v[low].path, name, n) == 0; low++)
        if (p->v[low].path[n] == '\0' || p->v[low].path[n] == '/')
            return true;
    return false;
}
