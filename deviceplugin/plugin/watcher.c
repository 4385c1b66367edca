/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watcher - the folder plugins_registry, where plugins of any type put a socket; the agent then requests
 * their type and name.
 *
 * After a change of the folder, the whole tree is read and compared with the known entries. So the order of
 * events does not matter, and neither does a lost event. A socket is a new one if its inode or its time of
 * creation differs. Each socket is an entry (entry.c), which registers on its own.
 */
#include "deviceplugin/plugin/watcher.h"

#include "base/files/fs.h"
#include "base/files/watches.h"
#include "base/scope.h"
#include "base/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

enum {
    ENTRIES_MAX = 256,
    FOLDERS_MAX = 256,
    DEPTH_MAX = 8,
    LOOK_REST =
        3, /* after each scan, a pause of this many times its duration: a quarter of the loop's time */
    LOOK_AGAIN_MS = 5000, /* after a failed scan */
    LOOK_FULL_MS =
        1000, /* after a scan with too many sockets, because dead sockets may have been detected by then */
};

struct watcher {
    struct dp_plugins *all;
    struct watch_set *set;
    int wds[FOLDERS_MAX];
    size_t n_wds;
    struct entries entries;
    size_t n_entries;
    uv_timer_t turn; /* the next scan */
    uint64_t rests_until_ms;
};

/* ---- one scan ---- */

struct look {
    struct watcher *w;
    int wds[FOLDERS_MAX];
    size_t n_wds;
    bool full;    /* a socket was ignored */
    struct err e; /* the first failure: then no absence is proven */
};

static void look_failed(struct look *l, const struct err *e)
{
    if (l->e.code == ERR_OK)
        l->e = *e;
}

static struct entry *entry_at(struct watcher *w, const char *path)
{
    struct entry *x;

    LIST_FOREACH (x, &w->entries, link) {
        if (!entry_is_gone(x) && strcmp(x->path, path) == 0)
            return x;
    }
    return NULL;
}

static bool is_older(const struct entry *x, const struct timespec *than)
{
    const struct timespec *made = &x->id.made;

    return made->tv_sec != than->tv_sec ? made->tv_sec < than->tv_sec : made->tv_nsec < than->tv_nsec;
}

/*
 * Whether there is room for a socket of this age. Sockets of dead plugins stay in the folder: the oldest
 * socket without an answer is dropped for a newer one, and an older one never replaces a newer one.
 */
static bool make_room(struct watcher *w, const struct timespec *made)
{
    struct entry *x, *oldest = NULL;
    size_t n = 0;

    LIST_FOREACH (x, &w->entries, link) {
        n += !entry_is_gone(x);
        if (x->state == ENTRY_FAILED && is_older(x, oldest != NULL ? &oldest->id.made : made))
            oldest = x;
    }
    if (n >= ENTRIES_MAX && oldest != NULL && w->n_entries < 2 * ENTRIES_MAX) {
        entry_gone(oldest);
        n--;
    }
    return n < ENTRIES_MAX;
}

static void see_socket(struct look *l, const char *path, const struct stat *st)
{
    const struct entry_id id = { st->st_dev, st->st_ino, st->st_mtim };
    struct watcher *w = l->w;
    struct entry *x = entry_at(w, path);
    struct err e = { 0 };

    if (x != NULL) {
        x->seen = true;
        entry_is_now(x, &id);
        return;
    }
    if (!make_room(w, &st->st_mtim)) {
        l->full = true;
        err_set(&e, ERR_EXHAUSTED, "more than %d sockets; %s is ignored", ENTRIES_MAX, path);
        dp_problem_set(w->all, w->all->o.registry_dir, NULL, &e);
        return;
    }
    x = entry_new(w->all, &w->entries, &w->n_entries, path, &id);
    if (x == NULL) {
        err_nomem(&e);
        look_failed(l, &e);
    } else {
        x->seen = true;
    }
}

static bool add_name(const char *name, void *arg)
{
    return name[0] == '.' || strs_add(arg, name);
}

static void see_folder(struct look *l, const char *path, int depth);

static void see(struct look *l, const char *folder, const char *name, int depth)
{
    str_auto path = str_printf("%s/%s", folder, name);
    struct err e = { 0 };
    struct stat st;

    if (path == NULL) {
        err_nomem(&e);
        look_failed(l, &e);
        return;
    }
    switch (presence_of(fs_look_at(AT_FDCWD, path, &st, &e))) {
    case PRESENCE_UNKNOWN:
        look_failed(l, &e);
        return;
    case PRESENCE_ABSENT:
        return;
    case PRESENCE_PRESENT:
        break;
    }
    if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
        see_folder(l, path, depth + 1);
    else if (S_ISSOCK(st.st_mode))
        see_socket(l, path, &st);
}

/* The folder is watched before it is listed, so that later changes cause events. */
static bool watch_folder(struct look *l, const char *path)
{
    struct err e = { 0 };
    int wd;

    if (l->n_wds == FOLDERS_MAX) {
        err_set(&e, ERR_EXHAUSTED, "more than %d folders; %s is ignored", FOLDERS_MAX, path);
        dp_problem_set(l->w->all, l->w->all->o.registry_dir, NULL, &e);
        return false;
    }
    wd = watch_set_add(l->w->set, path,
                       IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |
                           IN_ONLYDIR | IN_DONT_FOLLOW);
    if (wd >= 0) {
        l->wds[l->n_wds++] = wd;
        return true;
    }
    if (errno != ENOENT && errno != ENOTDIR) {
        err_sys(&e, errno, "watch %s", path);
        look_failed(l, &e);
    }
    return false;
}

static void see_folder(struct look *l, const char *path, int depth)
{
    struct strs names = { 0 };
    struct err e = { 0 };

    if (!watch_folder(l, path))
        return;
    if (presence_is_unknown(fs_list(AT_FDCWD, path, add_name, &names, &e)))
        look_failed(l, &e);
    strs_sort(&names);
    for (size_t i = 0; i < names.n; i++)
        see(l, path, names.v[i], depth);
    strs_done(&names);
}

static bool has_wd(const int *wds, size_t n, int wd)
{
    for (size_t i = 0; i < n; i++) {
        if (wds[i] == wd)
            return true;
    }
    return false;
}

static void keep_watches(struct watcher *w, const struct look *l)
{
    for (size_t i = 0; i < w->n_wds; i++) {
        if (!has_wd(l->wds, l->n_wds, w->wds[i]))
            watch_set_remove(w->set, w->wds[i]);
    }
    memcpy(w->wds, l->wds, l->n_wds * sizeof(l->wds[0]));
    w->n_wds = l->n_wds;
}

static void on_turn(uv_timer_t *timer);

/* Whether there are entries that neither registered nor failed yet. */
static bool has_undecided(const struct watcher *w)
{
    const struct entry *x;

    LIST_FOREACH (x, &w->entries, link) {
        if (x->state != ENTRY_REGISTERED && x->pause_ms == 0)
            return true;
    }
    return false;
}

static void look(struct watcher *w)
{
    struct look l = { .w = w };
    struct entry *x, *next;

    dp_problem_clear(w->all, w->all->o.registry_dir);
    LIST_FOREACH (x, &w->entries, link)
        x->seen = false;
    if (fs_mkdirs(w->all->o.registry_dir, 0750, &l.e) == ERR_OK)
        see_folder(&l, w->all->o.registry_dir, 0);
    if (l.e.code != ERR_OK) { /* no absence is proven; the entries that were found stay */
        dp_problem_set(w->all, w->all->o.registry_dir, NULL, &l.e);
        uv_timer_start(&w->turn, on_turn, LOOK_AGAIN_MS, 0);
        return;
    }
    keep_watches(w, &l);
    for (x = LIST_FIRST(&w->entries); x != NULL; x = next) {
        next = LIST_NEXT(x, link);
        if (!x->seen)
            entry_gone(x);
    }
    if (l.full && has_undecided(w))
        uv_timer_start(&w->turn, on_turn, LOOK_FULL_MS, 0);
}

static void on_turn(uv_timer_t *timer)
{
    struct watcher *w = timer->data;
    uint64_t from = uv_hrtime(), took_ms;

    look(w);
    took_ms = (uv_hrtime() - from) / 1000000;
    uv_update_time(w->all->o.loop);
    w->rests_until_ms = uv_now(w->all->o.loop) + LOOK_REST * took_ms;
}

static void on_change(int wd, uint32_t mask, const char *name, void *arg)
{
    struct watcher *w = arg;
    uint64_t now = uv_now(w->all->o.loop);

    (void)wd;
    if (name[0] == '.' || w->all->cancelled)
        return;
    if ((mask & IN_IGNORED) != 0 && !has_wd(w->wds, w->n_wds, wd))
        return;
    if (!uv_is_active((uv_handle_t *)&w->turn) || uv_timer_get_due_in(&w->turn) > LOOK_AGAIN_MS / 2)
        uv_timer_start(&w->turn, on_turn, w->rests_until_ms > now ? w->rests_until_ms - now : 0, 0);
}

/* ---- life ---- */

enum err_code watcher_open(struct watcher **ret, struct dp_plugins *all, struct err *e)
{
    struct watcher *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return err_nomem(e);
    w->all = all;
    LIST_INIT(&w->entries);
    if (watch_set_open(&w->set, all->o.loop, on_change, w, e) != ERR_OK) {
        free(w);
        return e->code;
    }
    uv_timer_init(all->o.loop, &w->turn);
    w->turn.data = w;
    uv_timer_start(&w->turn, on_turn, 0, 0);
    *ret = w;
    return ERR_OK;
}

bool watcher_busy(const struct watcher *w)
{
    return !LIST_EMPTY(&w->entries);
}

void watcher_cancel(struct watcher *w)
{
    struct entry *x, *next;

    uv_timer_stop(&w->turn);
    for (x = LIST_FIRST(&w->entries); x != NULL; x = next) {
        next = LIST_NEXT(x, link);
        entry_gone(x);
    }
}

static void turn_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void watcher_close(struct watcher *w)
{
    if (w == NULL)
        return;
    watch_set_close(w->set);
    uv_close((uv_handle_t *)&w->turn, turn_on_closed);
}
