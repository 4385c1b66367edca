/* SPDX-License-Identifier: Apache-2.0 */
/* folder - timing and consequences: when a change in the folder takes effect, and how it affects files that
 * wait for objects of other files. */
#include "agent/source/internal.h"

#include "agent/source/put.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/strs.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum {
    NAMES_MAX = 65536,     /* far more than any manifest folder has */
    UNSEEN_RETRY_MS = 100, /* after the folder could not be read; doubled */
    UNSEEN_RETRY_MAX_MS = 10000,
};

/* ---- timing ---- */

static void folder_on_timer(uv_timer_t *timer)
{
    folder_settle(timer->data);
    reads_start(timer->data);
}

static void rescan_in(struct src_folder *f, uint64_t ms)
{
    f->rescan_ms = clock_mono_ms() + ms;
    if (f->timer.loop == NULL) /* while it opens; handled in the first turn */
        return;
    if (!uv_is_active((uv_handle_t *)&f->timer) || uv_timer_get_due_in(&f->timer) > ms)
        uv_timer_start(&f->timer, folder_on_timer, ms, 0);
}

void folder_rescan_later(struct src_folder *f)
{
    rescan_in(f, LACKING_RETRY_MS);
}

void folder_unseen(struct src_folder *f, const struct err *e)
{
    if (f->closing || (f->unseen_wait_ms != 0 && f->rescan_ms > clock_mono_ms()))
        return; /* the next attempt is already due */
    if (f->unseen_wait_ms == 0)
        log_warn("cannot read the manifest folder; its objects stay in effect, will retry",
                 F_STR("path", f->dir), F_ERR(e));
    f->unseen_wait_ms = backoff_next_ms(f->unseen_wait_ms, UNSEEN_RETRY_MS, UNSEEN_RETRY_MAX_MS);
    rescan_in(f, f->unseen_wait_ms);
}

void folder_settle_soon(struct src_folder *f)
{
    uv_timer_start(&f->timer, folder_on_timer, 0, 0); /* the callback then sets the timer for later events */
}

/* Retries files that wait for an object, in order of arrival, until nothing changes any more. */
static void retry_blocked(struct src_folder *f)
{
    struct file *file, *tmp, *first;
    uint64_t after = 0;

    if (f->retried == f->claims.releases)
        return;
    for (;;) {
        struct api_objects waiting;

        first = NULL;
        HASH_ITER (hh, f->files, file, tmp) {
            if (file->holder.blocked && file->seen > after && (first == NULL || file->seen < first->seen))
                first = file;
        }
        if (first == NULL)
            break;
        after = first->seen;
        waiting = first->holder.waiting;
        first->holder.waiting = (struct api_objects){ 0 };
        if (object_claims_adopt(&f->claims, &first->holder, &waiting, false, f->last_seq)) {
            file_report(first);
            after = 0; /* this file may have released an object */
        }
    }
    f->retried = f->claims.releases;
}

static struct presence folder_look_at(const struct file *file, struct err *e)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", file->folder->dir, file->name) >= (int)sizeof(path))
        return presence_absent();
    return fs_look_at(AT_FDCWD, path, NULL, e);
}

/* True if the file is provably removed. If unknown, it is checked again. */
static bool is_removed(struct file *file)
{
    struct err e = { 0 };

    switch (presence_of(folder_look_at(file, &e))) {
    case PRESENCE_ABSENT:
        return true;
    case PRESENCE_PRESENT: /* recreated; it will be reported when complete */
        file->gone_ms = 0;
        file->holder.leaving = false;
        return false;
    case PRESENCE_UNKNOWN:
        folder_unseen(file->folder, &e);
        file->gone_ms = clock_mono_ms() + file->folder->unseen_wait_ms;
        return false;
    }
    return false;
}

void folder_settle(struct src_folder *f)
{
    uint64_t now = clock_mono_ms(), next = UINT64_MAX, done, due_next;
    bool folder_checked = false, folder_seen = true, torn = false;
    struct file *file, *tmp;

    HASH_ITER (hh, f->files, file, tmp) {
        uint64_t due = file->gone_ms != 0 ? file->gone_ms : file->retry_ms;

        torn = torn || file->torn > 0;
        if (due != 0 && due <= now && file->gone_ms != 0) {
            if (!folder_checked)
                folder_seen = watch_check(f); /* if the folder is missing, its objects stay */
            folder_checked = true;
            if (!folder_seen && file->gone_ms != 0)
                file->gone_ms = now + f->unseen_wait_ms;
            due = file->gone_ms;
        }
        if (due == 0 || file->reading)
            continue;
        if (due > now) {
            next = due < next ? due : next;
            continue;
        }
        if (file->gone_ms == 0) {
            reads_queue(file);
        } else if (is_removed(file)) {
            file_remove(file);
        } else if (file->gone_ms != 0) {
            next = file->gone_ms < next ? file->gone_ms : next;
        }
    }

    if (f->rescan_ms != 0 && f->rescan_ms <= now) {
        f->rescan_ms = 0;
        if (watch_check(f) && f->state == WATCH_FOLDER)
            folder_rescan(f);
    }
    if (f->rescan_ms != 0)
        next = f->rescan_ms < next ? f->rescan_ms : next;

    retry_blocked(f);
    done = TAILQ_EMPTY(&f->pending) ? UINT64_MAX : TAILQ_FIRST(&f->pending)->seq;
    object_claims_flush(&f->claims, done);
    HASH_ITER (hh, f->files, file, tmp) {
        if (file->report_seq == 0 || file->report_seq >= done || file->gone_ms != 0)
            continue;
        if (file->report_ms <= now)
            file_report(file);
        else
            next = file->report_ms < next ? file->report_ms : next;
    }
    if (!f->first_done && !torn && done > f->first_seq) {
        f->first_done = true;
        src_store_set_ready(f->store, API_FROM_FOLDER);
        if (f->first_set != NULL)
            f->first_set(f->arg);
    }
    if (f->closing) /* first_set has closed the folder */
        return;
    due_next = awaits_settle(f, done);
    if (f->closing)
        return;
    next = due_next < next ? due_next : next;
    if (next != UINT64_MAX &&
        (!uv_is_active((uv_handle_t *)&f->timer) || uv_timer_get_due_in(&f->timer) > next - now))
        uv_timer_start(&f->timer, folder_on_timer, next - now, 0);
}

/* ---- called by watch.c ---- */

void folder_touched(struct src_folder *f, const char *name)
{
    struct file *file = api_file_is_ignored(name) ? NULL : file_find_or_add(f, name);

    if (file == NULL)
        return;
    reads_queue(file);
    reads_start(f);
}

void folder_retouched(struct src_folder *f, const char *name)
{
    struct file *file = file_find(f, name);

    if (file != NULL && problems_any(&file->holder.problems))
        folder_touched(f, name);
}

void folder_missing(struct src_folder *f, const char *name, uint64_t wait_ms)
{
    struct file *file = file_find(f, name);

    if (file == NULL)
        return;
    file->gone_ms = clock_mono_ms() + wait_ms;
    file->holder.leaving = true;
    if (!uv_is_active((uv_handle_t *)&f->timer) || uv_timer_get_due_in(&f->timer) > wait_ms)
        uv_timer_start(&f->timer, folder_on_timer, wait_ms, 0);
}

struct names {
    struct strs list;
    bool lacking; /* out of memory: the list is incomplete */
};

static bool folder_add_name(const char *name, void *arg)
{
    struct names *names = arg;

    if (api_file_is_ignored(name))
        return true;
    if (names->list.n == NAMES_MAX)
        return false;
    names->lacking = !strs_add(&names->list, name);
    return !names->lacking;
}

/* The names are sorted, so that the first of two files is the same at each start. Present: the list is
 * complete. */
static struct presence list_names(struct src_folder *f, struct names *ret, struct err *e)
{
    struct presence listed = fs_list(AT_FDCWD, f->dir, folder_add_name, ret, e);

    strs_sort(&ret->list);
    if (ret->lacking) {
        err_nomem(e);
        return presence_unknown(e);
    }
    return listed;
}

/* A name that is not in a complete listing is missing; each missing name is checked again. */
void folder_rescan(struct src_folder *f)
{
    struct names names = { 0 };
    struct file *file, *tmp;
    struct err e = { 0 };
    struct presence listed = list_names(f, &names, &e);

    /* Nothing is written into the folder before its first set is read. */
    if (f->scans++ == 0)
        src_put_sweep(f->dir);
    for (size_t i = 0; i < names.list.n; i++) {
        file = file_find_or_add(f, names.list.v[i]);
        if (file != NULL) {
            file->scan = f->scans;
            reads_queue(file);
        }
    }
    strs_done(&names.list);
    f->listed = !presence_is_unknown(listed);
    if (f->listed) {
        if (f->unseen_wait_ms != 0)
            log_info("the manifest folder is readable again", F_STR("path", f->dir));
        f->unseen_wait_ms = 0;
        HASH_ITER (hh, f->files, file, tmp) {
            if (file->scan != f->scans)
                folder_missing(f, file->name, SRC_FOLDER_SETTLE_MS);
        }
    } else {
        folder_unseen(f, &e);
    }
    reads_start(f);
}

void folder_lost(struct src_folder *f)
{
    struct file *file, *tmp;

    HASH_ITER (hh, f->files, file, tmp) {
        file->gone_ms = file->retry_ms = 0;
        file->holder.leaving = false;
    }
}

/* ---- life ---- */

void folder_end(struct src_folder *f)
{
    if (f->open_handles > 0 || f->n_reading > 0)
        return;
    object_claims_done(&f->claims);
    free(f->dir);
    free(f);
}

void folder_handle_closed(uv_handle_t *handle)
{
    struct src_folder *f = handle->data;

    f->open_handles--;
    folder_end(f);
}

enum err_code src_folder_open(struct src_folder **ret, uv_loop_t *loop, const char *dir,
                              struct src_store *store, src_file_fn on_file, void (*first_set)(void *arg),
                              void *arg, const char *node_name, struct err *e)
{
    struct src_folder *f;
    struct stat st;

    if (dir[0] != '/' || strlen(dir) >= PATH_MAX - NAME_MAX - 1)
        return err_set(e, ERR_INVALID, "manifest folder \"%s\": is not an absolute path of usable length",
                       dir);
    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, "manifest folder %s: is not a folder", dir);

    f = calloc(1, sizeof(*f));
    if (f == NULL || (f->dir = strdup(dir)) == NULL) {
        free(f);
        return err_nomem(e);
    }
    while (strlen(f->dir) > 1 && str_ends(f->dir, "/"))
        f->dir[strlen(f->dir) - 1] = '\0';
    f->loop = loop;
    f->store = f->claims.store = store;
    f->on_file = on_file;
    f->first_set = first_set;
    f->arg = arg;
    f->node_name = node_name;
    TAILQ_INIT(&f->pending);
    TAILQ_INIT(&f->awaits);
    if (watch_open(f, e) != ERR_OK) {
        free(f->dir);
        free(f);
        return err_wrap(e, "manifest folder %s", dir);
    }
    uv_timer_init(loop, &f->timer);
    f->timer.data = f;
    f->open_handles++;
    uv_timer_start(&f->timer, folder_on_timer, 0, 0); /* completes the first set if there are no files */
    if (f->state == WATCH_FOLDER)
        folder_rescan(f);
    f->first_seq = f->last_seq;
    *ret = f;
    return ERR_OK;
}

enum err_code src_folder_seed(struct src_folder *f, const char *name, struct api_pod *pod, struct err *e)
{
    struct file *file =
        api_file_is_ignored(name) || strchr(name, '/') != NULL ? NULL : file_find_or_add(f, name);
    struct api_objects objects = { 0 };
    const struct api_objects *held;

    if (file == NULL)
        return err_set(e, ERR_INVALID, "manifest file \"%s\": an ignored name, or too many files", name);
    held = &file->holder.in_force; /* other pods of the same file */
    objects.v = calloc(held->n + 1, sizeof(*objects.v));
    if (objects.v == NULL)
        return err_nomem(e);
    for (; objects.n < held->n; objects.n++)
        objects.v[objects.n] = api_object_ref(&held->v[objects.n]);
    objects.v[objects.n] =
        (struct api_object){ .kind = API_KIND_POD, .document = (int)objects.n, .pod = api_pod_ref(pod) };
    objects.n++;
    if (!object_claims_adopt(&f->claims, &file->holder, &objects, false, f->last_seq))
        return err_set(e, ERR_EXISTS, "manifest file %s: another file already contains its pod", name);
    if (f->state == WATCH_FOLDER && f->listed && file->scan != f->scans)
        folder_missing(f, name, SRC_FOLDER_SETTLE_MS);
    return ERR_OK;
}

const char *src_folder_file_of_pod(const struct src_folder *f, const char *namespace_, const char *name)
{
    return object_claims_owner(&f->claims, API_KIND_POD, namespace_, name);
}

const char *src_folder_dir(const struct src_folder *f)
{
    return f->dir;
}

bool src_folder_full(const struct src_folder *f)
{
    return f->n_files >= SRC_FOLDER_FILES_MAX;
}

bool src_folder_file(const struct src_folder *f, const char *name, struct src_file *ret)
{
    struct file *file;

    HASH_FIND_STR(f->files, name, file);
    if (file != NULL)
        *ret = src_file_describe(file);
    return file != NULL;
}

const char *src_folder_home(const struct src_folder *f, enum api_kind kind, const char *namespace_,
                            const char *name, const struct api_object **ret, size_t *ret_n)
{
    const char *home = object_claims_owner(&f->claims, kind, namespace_, name);
    const struct api_objects *held;
    struct file *file = NULL;

    if (home != NULL)
        HASH_FIND_STR(f->files, home, file);
    if (file == NULL)
        return NULL;
    held = &file->holder.in_force;
    *ret_n = held->n;
    for (size_t i = 0; i < held->n; i++) {
        const struct api_meta *meta = api_object_meta(&held->v[i]);

        if (held->v[i].kind == kind && str_eq(meta->name, name) && str_eq(meta->namespace, namespace_)) {
            *ret = &held->v[i];
            return home;
        }
    }
    return NULL;
}

bool src_folder_busy(const struct src_folder *f)
{
    return !TAILQ_EMPTY(&f->pending);
}

void src_folder_close(struct src_folder *f)
{
    struct file *file, *tmp;

    if (f == NULL)
        return;
    assert(!f->closing);
    f->closing = true;
    awaits_close(f);
    watch_close(f);
    uv_close((uv_handle_t *)&f->timer, folder_handle_closed);
    HASH_ITER (hh, f->files, file, tmp) {
        if (!file->reading || file->read)
            file_free(file);
    }
}
