/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the folders: an inotify event starts a read of all of them on the pool, and events during the read
 * cause another one. For a missing folder, its nearest existing parent is watched.
 */
#include "agent/cdi/internal.h"

#include "base/backoff.h"
#include "base/files/watches.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/work.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum { RETRY_FIRST_MS = 250, RETRY_MOST_MS = 60000 };

static const uint32_t folder_mask = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                    IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
static const uint32_t parent_mask =
    IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

struct folder {
    const char *path;
    int wd, parent_wd;       /* -1: none */
    char next[NAME_MAX + 1]; /* the name in the watched parent that leads to it */
};

struct cdi {
    uv_loop_t *loop;
    const char *const *dirs;
    void (*changed)(void *arg);
    void *arg;
    struct watch_set *watches;
    struct folder *folders;
    size_t n_folders;
    struct cdi_content *content; /* NULL: not read yet */
    struct cdi_content *found;   /* by the read in progress */
    struct work work;
    bool reading, again; /* something changed since the read began */
    bool asked;          /* changed() is called at the end of the read in any case */
    bool closing, timer_open;
    struct err look; /* why the last read failed */
    struct api_problem problem;
    uint64_t retry_ms;
    uv_timer_t timer; /* runs while a failed read waits for its retry */
};

/* ---- reading ---- */

static void cdi_free(struct cdi *c)
{
    if (c->reading || c->timer_open)
        return;
    cdi_content_unref(c->content);
    cdi_content_unref(c->found);
    free(c->folders);
    free(c);
}

static enum err_code cdi_read(void *arg, struct err *e)
{
    struct cdi *c = arg;

    return cdi_content_read(c->dirs, &c->found, e);
}

static void log_problem(const struct api_problem *p, void *arg)
{
    buf_auto text = BUF_INIT(2048);

    (void)arg;
    api_problem_add_text(p, "", &text);
    if (!text.failed && text.n > 0)
        log_warn("cannot use a CDI spec", F_STR("problem", text.p));
}

static void read_now(struct cdi *c);

static void cdi_on_timer(uv_timer_t *timer)
{
    read_now(timer->data);
}

static void adopt(struct cdi *c)
{
    bool differs = c->content == NULL || c->content->hash != c->found->hash;

    cdi_content_unref(c->content);
    c->content = take_ptr(&c->found);
    c->retry_ms = 0;
    c->look = (struct err){ 0 };
    if (differs) {
        log_debug("CDI specs read", F_U64("files", c->content->n_specs),
                  F_U64("devices", c->content->n_entries));
        cdi_problems(c, log_problem, NULL);
    }
    if (!differs && !c->asked)
        return;
    c->asked = false;
    c->changed(c->arg);
}

static void try_later(struct cdi *c, const struct err *e)
{
    if (c->look.code == ERR_OK)
        log_warn("cannot read the CDI specs, will retry", F_ERR(e));
    c->look = *e;
    c->problem = (struct api_problem){ .field = "", .message = c->look.text };
    c->retry_ms = backoff_next_ms(c->retry_ms, RETRY_FIRST_MS, RETRY_MOST_MS);
    uv_timer_start(&c->timer, cdi_on_timer, c->retry_ms, 0);
}

static void on_read(struct op *op, const struct err *result)
{
    struct cdi *c = op->owner;

    c->reading = false;
    if (c->closing) {
        cdi_free(c);
        return;
    }
    if (c->again) { /* the present content may be newer */
        cdi_content_unref(take_ptr(&c->found));
        read_now(c);
    } else if (result->code == ERR_OK) {
        adopt(c);
    } else {
        try_later(c, result);
    }
}

static void read_now(struct cdi *c)
{
    uv_timer_stop(&c->timer);
    c->again = c->reading;
    if (c->reading)
        return;
    c->reading = true;
    work_start(&c->work, "read CDI specs", "", cdi_read, c, c->loop, on_read, c);
}

/* ---- watching ---- */

static void release_wd(struct cdi *c, int wd)
{
    for (size_t i = 0; i < c->n_folders; i++)
        if (c->folders[i].wd == wd || c->folders[i].parent_wd == wd)
            return;
    if (wd >= 0)
        watch_set_remove(c->watches, wd);
}

static void set_wd(struct cdi *c, int *slot, int wd)
{
    int old = *slot;

    *slot = wd;
    if (old != wd)
        release_wd(c, old);
}

static void watch_parent(struct cdi *c, struct folder *f)
{
    char path[PATH_MAX];
    char *slash;
    int wd = -1;

    if (snprintf(path, sizeof(path), "%s", f->path) >= (int)sizeof(path))
        return;
    while (wd < 0 && (slash = strrchr(path, '/')) != NULL && path[1] != '\0') {
        snprintf(f->next, sizeof(f->next), "%s", slash + 1);
        slash[slash == path ? 1 : 0] = '\0';
        wd = watch_set_add(c->watches, path, parent_mask);
    }
    set_wd(c, &f->parent_wd, wd);
}

/* An existing folder reports its own removal. Its parent is not watched then, because it is often /run, which
 * other programs use, too. The folder is tried twice, because it may appear before its parent is watched. */
static void watch_folder(struct cdi *c, struct folder *f)
{
    set_wd(c, &f->wd, watch_set_add(c->watches, f->path, folder_mask));
    if (f->wd < 0) {
        watch_parent(c, f);
        set_wd(c, &f->wd, watch_set_add(c->watches, f->path, folder_mask));
    }
    if (f->wd >= 0)
        set_wd(c, &f->parent_wd, -1);
}

/* A newly created file is closed later; a link is complete at once. */
static bool is_complete(const struct folder *f, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if (snprintf(path, sizeof(path), "%s/%s", f->path, name) >= (int)sizeof(path) || lstat(path, &st) < 0)
        return true;
    return !S_ISREG(st.st_mode) || st.st_nlink > 1;
}

static bool concerns(const struct folder *f, uint32_t mask, const char *name)
{
    if (name[0] == '\0')
        return true;
    if (strcmp(name, "..data") == 0) /* a mounted ConfigMap got a new generation */
        return (mask & IN_MOVED_TO) != 0;
    if (!cdi_is_spec_file(name))
        return false;
    return (mask & ~(uint32_t)IN_CREATE) != 0 || is_complete(f, name);
}

static bool folder_event(struct cdi *c, struct folder *f, int wd, uint32_t mask, const char *name)
{
    bool due = false;
    int old = f->wd;

    if (wd == f->wd) {
        due = concerns(f, mask, name);
        if (mask & IN_IGNORED)
            f->wd = -1;
        if (mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
            watch_folder(c, f);
    }
    if (wd == f->parent_wd && (name[0] == '\0' || strcmp(name, f->next) == 0)) {
        if (mask & IN_IGNORED)
            f->parent_wd = -1;
        watch_folder(c, f);
        due = due || f->wd != old;
    }
    return due;
}

static void cdi_on_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct cdi *c = arg;
    bool due = (mask & IN_Q_OVERFLOW) != 0;

    for (size_t i = 0; i < c->n_folders; i++) {
        if (mask & IN_Q_OVERFLOW)
            watch_folder(c, &c->folders[i]);
        else
            due = folder_event(c, &c->folders[i], wd, mask, name) || due;
    }
    if (due)
        read_now(c);
}

/* ---- life ---- */

enum err_code cdi_open(struct cdi **ret, uv_loop_t *loop, const char *const *dirs, void (*changed)(void *arg),
                       void *arg, struct err *e)
{
    struct cdi *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    *c = (struct cdi){ .loop = loop, .dirs = dirs, .changed = changed, .arg = arg, .timer_open = true };
    while (dirs != NULL && dirs[c->n_folders] != NULL)
        c->n_folders++;
    c->folders = calloc(c->n_folders + 1, sizeof(*c->folders));
    if (c->folders == NULL || watch_set_open(&c->watches, loop, cdi_on_event, c, e) != ERR_OK) {
        free(c->folders);
        free(c);
        return err_nomem(e);
    }
    uv_timer_init(loop, &c->timer);
    c->timer.data = c;
    for (size_t i = 0; i < c->n_folders; i++)
        c->folders[i] = (struct folder){ .path = dirs[i], .wd = -1, .parent_wd = -1 };
    for (size_t i = 0; i < c->n_folders; i++)
        watch_folder(c, &c->folders[i]);
    read_now(c);
    *ret = c;
    return ERR_OK;
}

static void cdi_on_closed(uv_handle_t *handle)
{
    struct cdi *c = handle->data;

    c->timer_open = false;
    cdi_free(c);
}

void cdi_close(struct cdi *c)
{
    if (c == NULL)
        return;
    c->closing = true;
    watch_set_close(take_ptr(&c->watches));
    uv_close((uv_handle_t *)&c->timer, cdi_on_closed);
}

bool cdi_is_ready(const struct cdi *c)
{
    return c->content != NULL;
}

bool cdi_is_busy(const struct cdi *c)
{
    return c->reading;
}

void cdi_await(struct cdi *c)
{
    c->asked = true;
}

void cdi_refresh(struct cdi *c)
{
    c->asked = true;
    for (size_t i = 0; i < c->n_folders; i++) /* a mount over a folder causes no event */
        watch_folder(c, &c->folders[i]);
    read_now(c);
}

enum err_code cdi_resolve(const struct cdi *c, const char *const *names, size_t n, struct cdi_resolved *ret,
                          struct err *e)
{
    if (c->content == NULL)
        return err_set(e, ERR_UNAVAILABLE, CDI_FAILED ": the specs are not read yet%s%s",
                       c->look.code != ERR_OK ? ": " : "", c->look.text);
    return cdi_content_resolve(c->content, names, n, ret, e);
}

void cdi_problems(const struct cdi *c, void (*fn)(const struct api_problem *p, void *arg), void *arg)
{
    if (c->look.code != ERR_OK)
        fn(&c->problem, arg);
    for (size_t i = 0; c->content != NULL && i < c->content->problems.n; i++)
        fn(&c->content->problems.v[i], arg);
}

void cdi_devices(const struct cdi *c, void (*fn)(const char *name, const char *path, void *arg), void *arg)
{
    for (size_t i = 0; c->content != NULL && i < c->content->n_entries; i++)
        if (!c->content->entries[i].conflict)
            fn(c->content->entries[i].device->name, c->content->entries[i].spec->path, arg);
}
