/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/plugin/watch.h"

#include "base/buf.h"
#include "base/files/watches.h"
#include "base/scope.h"

#include <limits.h>
#include <string.h>
#include <sys/inotify.h>

#define MASK                                                                                                 \
    (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF |     \
     IN_MOVE_SELF | IN_ONLYDIR)

/* Two (the folder and its parent) for each of a few folders. */
#define PLACES_MAX 64

/* Folders may be created and removed meanwhile; after this many rounds the parent's event triggers the next
 * try. */
#define ROUNDS_MAX 8

struct place {
    int wd;
    char *only; /* events of this name only; NULL: all */
};

struct cni_watch {
    uv_timer_t settle;
    struct watch_set *set;
    struct place places[PLACES_MAX];
    size_t n_places;
    void (*fn)(void *arg);
    void (*again)(void *arg); /* called by the timer; NULL: fn */
    void *arg;
};

static bool concerns(const struct cni_watch *w, int wd, uint32_t mask, const char *name)
{
    if ((mask & IN_Q_OVERFLOW) != 0)
        return true;
    if ((mask & IN_IGNORED) != 0)
        return false;
    for (size_t i = 0; i < w->n_places; i++) {
        const struct place *p = &w->places[i];

        if (p->wd == wd && (p->only == NULL || name[0] == '\0' || strcmp(p->only, name) == 0))
            return true;
    }
    return false;
}

static void on_settled(uv_timer_t *timer)
{
    struct cni_watch *w = timer->data;

    (w->again != NULL ? w->again : w->fn)(w->arg);
}

static void cni_watch_on_change(int wd, uint32_t mask, const char *name, void *arg)
{
    struct cni_watch *w = arg;

    if (!concerns(w, wd, mask, name) || (w->again == NULL && uv_is_active((uv_handle_t *)&w->settle)))
        return;
    w->again = NULL;
    uv_timer_start(&w->settle, on_settled, CNI_WATCH_SETTLE_MS, 0);
}

void cni_watch_again(struct cni_watch *w, uint64_t ms, void (*fn)(void *arg))
{
    if (w->again == NULL && uv_is_active((uv_handle_t *)&w->settle))
        return; /* a change is about to be reported */
    w->again = fn;
    uv_timer_start(&w->settle, on_settled, ms, 0);
}

enum err_code cni_watch_open(struct cni_watch **ret, uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                             struct err *e)
{
    mem_auto struct cni_watch *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return err_nomem(e);
    w->fn = fn;
    w->arg = arg;
    if (watch_set_open(&w->set, loop, cni_watch_on_change, w, e) != ERR_OK)
        return e->code;
    uv_timer_init(loop, &w->settle);
    w->settle.data = w;
    *ret = take_ptr(&w);
    return ERR_OK;
}

/* Adds a place to the new set; takes ownership of `only`. */
static enum err_code cni_watch_add(struct cni_watch *w, struct place *set, size_t *n, const char *path,
                                   char *only, struct err *e)
{
    str_auto name = only;
    int wd;

    if (*n == PLACES_MAX)
        return err_set(e, ERR_EXHAUSTED, "watch %s: more than %d folders", path, PLACES_MAX);
    wd = watch_set_add(w->set, path, MASK);
    if (wd < 0)
        return err_sys(e, errno, "watch %s", path);
    set[(*n)++] = (struct place){ .wd = wd, .only = take_ptr(&name) };
    return ERR_OK;
}

/* "/a/b" -> "/a", *ret_last = "b" (malloc'ed); false: there is no parent (or out of memory). */
static bool split_last(char *path, char **ret_last)
{
    size_t n = strlen(path);
    char *slash;

    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    slash = strrchr(path, '/');
    if (slash == NULL || slash[1] == '\0')
        return false;
    *ret_last = strdup(slash + 1);
    slash[slash == path ? 1 : 0] = '\0';
    return *ret_last != NULL;
}

/* Watches the folder itself, and the nearest existing parent for the name that leads to it (maybe a
 * symlink). */
static enum err_code cni_watch_add_folder(struct cni_watch *w, struct place *set, size_t *n, const char *dir,
                                          struct err *e)
{
    size_t before = *n;

    for (int round = 0; round < ROUNDS_MAX; round++) {
        str_auto path = strdup(dir);
        str_auto full = NULL;
        struct err missing = { 0 };
        char *last = NULL;
        bool exists;

        if (path == NULL)
            return err_nomem(e);
        while (*n > before)
            free(set[--*n].only);
        exists = cni_watch_add(w, set, n, path, NULL, &missing) == ERR_OK;
        if (!exists && missing.sys != ENOENT && missing.sys != ENOTDIR) {
            *e = missing;
            return e->code;
        }
        for (;;) { /* up to a parent that can be watched */
            if (!split_last(path, &last))
                return exists ? ERR_OK : err_set(e, ERR_NOT_FOUND, "watch %s: no parent folder", dir);
            free(full);
            full = str_printf("%s/%s", path, last);
            if (full == NULL) {
                free(last);
                return err_nomem(e);
            }
            missing = (struct err){ 0 };
            if (cni_watch_add(w, set, n, path, last, &missing) == ERR_OK)
                break;
            if (missing.sys != ENOENT && missing.sys != ENOTDIR) {
                *e = missing;
                return e->code;
            }
        }
        if (exists || access(full, F_OK) != 0)
            return ERR_OK;
        /* The folder appeared between the two lookups: repeat, to watch the folder itself. */
    }
    return ERR_OK;
}

static bool in_set(const struct place *set, size_t n, int wd)
{
    for (size_t i = 0; i < n; i++) {
        if (set[i].wd == wd)
            return true;
    }
    return false;
}

enum err_code cni_watch_set(struct cni_watch *w, const char *const *dirs, struct err *e)
{
    struct place set[PLACES_MAX];
    size_t n = 0;
    struct err first = { 0 };

    for (size_t i = 0; dirs[i] != NULL; i++) {
        struct err one = { 0 };

        if (cni_watch_add_folder(w, set, &n, dirs[i], &one) != ERR_OK && first.code == ERR_OK)
            first = one;
    }
    /* An inode that is already watched keeps its number, so there is no gap in its events. */
    for (size_t i = 0; i < w->n_places; i++) {
        if (!in_set(set, n, w->places[i].wd) && !in_set(w->places, i, w->places[i].wd))
            watch_set_remove(w->set, w->places[i].wd);
        free(w->places[i].only);
    }
    memcpy(w->places, set, n * sizeof(set[0]));
    w->n_places = n;
    if (first.code != ERR_OK)
        *e = first;
    return first.code;
}

static void cni_watch_on_closed(uv_handle_t *handle)
{
    struct cni_watch *w = handle->data;

    for (size_t i = 0; i < w->n_places; i++)
        free(w->places[i].only);
    free(w);
}

void cni_watch_close(struct cni_watch *w)
{
    if (w == NULL)
        return;
    watch_set_close(w->set);
    uv_close((uv_handle_t *)&w->settle, cni_watch_on_closed);
}
