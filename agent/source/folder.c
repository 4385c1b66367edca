#include "agent/source/internal.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum {
    LACKING_RETRY_MS = 2000, /* after a read that failed for want of memory or descriptors */
    TORN_MAX = 8,            /* reads spoiled by a writer before we say so: 2 s */
    NAMES_MAX = 65536        /* of a folder that nobody meant to be one of manifests */
};

static void pump(struct src_folder *f);
static void on_timer(uv_timer_t *timer);
static void settle(struct src_folder *f);

/* ---- what people see ------------------------------------------------------------------------ */

static bool has_problems(const struct api_problems *p)
{
    return p->n > 0 || p->dropped > 0; /* dropped alone: no memory for the text */
}

static struct src_file describe(const struct file *file)
{
    return (struct src_file){
        .dir = file->folder->dir,
        .name = file->name,
        .ok = !has_problems(&file->holder.problems),
        .stale = has_problems(&file->holder.problems) && file->holder.in_force.n > 0,
        .problems = file->holder.problems.v,
        .n_problems = file->holder.problems.n,
        .in_force = file->holder.in_force.v,
        .n_objects = file->holder.in_force.n,
        .read_ns = file->read_ns,
    };
}

/* FNV-1a over the problems; 0 when there are none. */
static uint64_t hash_problems(const struct src_file *f)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < f->n_problems; i++) {
        for (const char *p = f->problems[i].where; *p != '\0'; p++)
            h = (h ^ (unsigned char)*p) * 1099511628211u;
        for (const char *p = f->problems[i].what; *p != '\0'; p++)
            h = (h ^ (unsigned char)*p) * 1099511628211u;
    }
    return f->n_problems > 0 ? h | 1 : 0;
}

static void report(struct file *file)
{
    struct src_file seen = describe(file);
    uint64_t problems = hash_problems(&seen);
    bool known = problems != 0 && problems == file->told; /* one event more, nothing new to say */

    file->report_seq = 0;
    file->told = problems;
    if (!known && file->folder->on_file != NULL)
        file->folder->on_file(&seen, file->folder->arg);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct file *const *)a)->name, (*(struct file *const *)b)->name);
}

bool src_folder_busy(const struct src_folder *f)
{
    return !TAILQ_EMPTY(&f->pending);
}

void src_folder_each(const struct src_folder *f, src_file_fn fn, void *arg)
{
    mem_auto struct file **sorted = calloc(f->n_files + 1, sizeof(*sorted));
    struct file *file, *tmp;
    size_t n = 0;

    if (sorted == NULL)
        return;
    HASH_ITER (hh, f->files, file, tmp) {
        if (file->read_ns != 0)
            sorted[n++] = file;
    }
    qsort(sorted, n, sizeof(*sorted), by_name);
    for (size_t i = 0; i < n; i++) {
        struct src_file seen = describe(sorted[i]);

        fn(&seen, arg);
    }
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct file *find(struct src_folder *f, const char *name)
{
    struct file *file;

    HASH_FIND_STR(f->files, name, file);
    return file;
}

/* Something of the folder could not be taken in, for lack of memory or descriptors. */
static void rescan_later(struct src_folder *f)
{
    f->rescan_ms = clock_mono_ms() + LACKING_RETRY_MS;
    if (!uv_is_active((uv_handle_t *)&f->timer) || uv_timer_get_due_in(&f->timer) > LACKING_RETRY_MS)
        uv_timer_start(&f->timer, on_timer, LACKING_RETRY_MS, 0);
}

static struct file *find_or_add(struct src_folder *f, const char *name)
{
    struct file *file = find(f, name);

    if (file != NULL)
        return file;
    if (f->n_files >= SRC_FOLDER_FILES_MAX) {
        if (!f->full)
            log_warn("too many manifest files; the others are left out", F_STR("path", f->dir),
                     F_STR("file", name), F_U64("limit", SRC_FOLDER_FILES_MAX));
        f->full = true;
        return NULL;
    }
    file = calloc(1, sizeof(*file) + strlen(name) + 1);
    if (file == NULL)
        goto no_memory;
    strcpy(file->name, name);
    HASH_ADD_STR(f->files, name, file);
    if (file->hh.tbl == NULL)
        goto no_memory;
    file->folder = f;
    file->holder.name = file->name;
    file->target_wd = -1;
    file->seen = ++f->arrivals;
    f->n_files++;
    return file;
no_memory:
    free(file);
    rescan_later(f);
    log_error("manifest file is left out for now: out of memory", F_STR("path", f->dir), F_STR("file", name));
    return NULL;
}

static void free_file(struct file *file)
{
    struct src_folder *f = file->folder;

    watch_target(f, file, NULL);
    if (file->queued || file->reading)
        TAILQ_REMOVE(&f->pending, file, pending);
    HASH_DEL(f->files, file);
    f->n_files--;
    f->full = false;
    api_objects_done(&file->holder.in_force);
    api_objects_done(&file->holder.waiting);
    api_problems_done(&file->holder.problems);
    manifest_done(&file->manifest);
    free(file->target_name);
    free(file);
}

static void remove_file(struct file *file)
{
    struct src_folder *f = file->folder;

    claims_release(&f->claims, &file->holder, f->last_seq);
    free_file(file);
}

/* ---- reading: one read a file at a time, in order; the newest content wins -------------------- */

static void queue(struct file *file)
{
    struct src_folder *f = file->folder;

    file->gone_ms = file->retry_ms = 0;
    file->holder.leaving = false;
    if (file->reading) {
        file->again = true;
        return;
    }
    if (file->queued)
        TAILQ_REMOVE(&f->pending, file, pending);
    file->queued = true;
    file->seq = ++f->last_seq;
    TAILQ_INSERT_TAIL(&f->pending, file, pending);
}

/*
 * A file that holds nothing now is most likely one that somebody is just writing anew: an empty file is a
 * whole YAML stream. To end a pod, its file is removed.
 */
static void refuse_emptied(struct file *file)
{
    struct manifest *m = &file->manifest;

    if (m->objects.n == 0 && !has_problems(&m->problems) && file->holder.in_force.n > 0)
        api_problems_add(&m->problems, file->name,
                         "holds no objects any more; remove the file to remove what it held before");
}

static void apply(struct file *file, const struct err *result)
{
    struct src_folder *f = file->folder;
    struct manifest *m = &file->manifest;

    file->read_ns = m->read_ns;
    free(file->target_name);
    file->target_name = take_ptr(&m->target_name);
    if (watch_target(f, file, m->target_dir))
        file->again = true; /* it may have changed between the read and the watch */

    file->torn = m->torn ? file->torn + 1 : 0;
    if (m->torn && file->torn < TORN_MAX) {
        file->retry_ms = clock_mono_ms() + SRC_FOLDER_SETTLE_MS;
        return;
    }
    if (m->torn)
        api_problems_add(&m->problems, file->name, "is written to all the time");
    file->torn = 0;
    if (result->code != ERR_OK)
        api_problems_add(&m->problems, file->name, "%s", result->text);
    if (result->code == ERR_EXHAUSTED || m->lacking)
        file->retry_ms = clock_mono_ms() + LACKING_RETRY_MS;
    refuse_emptied(file);
    if (!has_problems(&m->problems)) {
        claims_adopt(&f->claims, &file->holder, &m->objects, true, f->last_seq);
    } else {
        api_objects_done(&file->holder.waiting);
        file->holder.waiting = (struct api_objects){ 0 };
        file->holder.blocked = false;
        api_problems_done(&file->holder.problems);
        file->holder.problems = m->problems;
        m->problems = (struct api_problems){ 0 };
    }
    if (file->holder.blocked)
        file->report_seq = f->last_seq;
    else
        report(file);
}

/* Files that wait for an object, in order of arrival, until nothing moves any more. */
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
        if (claims_adopt(&f->claims, &first->holder, &waiting, false, f->last_seq)) {
            report(first);
            after = 0; /* it may have let go of something */
        }
    }
    f->retried = f->claims.releases;
}

static void finish_read(struct file *file)
{
    struct src_folder *f = file->folder;
    bool again;

    TAILQ_REMOVE(&f->pending, file, pending);
    file->reading = file->read = false;
    if (file->manifest.missing) {
        if (!file->again && f->state == WATCH_FOLDER && file->gone_ms == 0)
            folder_missing(f, file->name);
    } else {
        apply(file, &file->result);
    }
    manifest_done(&file->manifest);
    again = file->again;
    file->again = false;
    if (again)
        queue(file);
}

/* The first set counts in the order of names, so that the same of two files wins at each start; later, what
 * is read counts. */
static void finish_reads(struct src_folder *f)
{
    struct file *file, *tmp;
    bool in_turn = true;

    TAILQ_FOREACH_SAFE (file, &f->pending, pending, tmp) {
        in_turn = in_turn && file->read;
        if (file->read && (in_turn || file->seq > f->first_seq))
            finish_read(file);
    }
}

static void on_read(struct op *op, const struct err *result)
{
    struct file *file = op->owner;
    struct src_folder *f = file->folder;

    f->n_reading--;
    if (f->closing) {
        free_file(file);
        pump(f);
        return;
    }
    file->read = true;
    file->result = *result;
    finish_reads(f);
    settle(f);
    pump(f);
}

static void start_read(struct file *file)
{
    struct src_folder *f = file->folder;

    file->queued = false;
    file->reading = true;
    f->n_reading++;
    file->manifest.dir = strdup(f->dir);
    file->manifest.name = strdup(file->name);
    if (file->manifest.dir == NULL || file->manifest.name == NULL) {
        log_error("manifest file is not read for now: out of memory", F_STR("file", file->name));
        rescan_later(f);
        manifest_done(&file->manifest);
        TAILQ_REMOVE(&f->pending, file, pending);
        file->reading = false;
        f->n_reading--;
        return;
    }
    work_start(&file->work, "read manifest", file->name, manifest_read, &file->manifest, f->loop, on_read,
               file);
}

/* ---- when things count ----------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    settle(timer->data);
    pump(timer->data);
}

static bool is_there(const struct file *file)
{
    char path[PATH_MAX];
    struct stat st;

    return snprintf(path, sizeof(path), "%s/%s", file->folder->dir, file->name) < (int)sizeof(path) &&
           lstat(path, &st) == 0;
}

/* What is due by now: files that stay away, second reads; then all that follows from it. */
static void settle(struct src_folder *f)
{
    uint64_t now = clock_mono_ms(), next = UINT64_MAX, done;
    bool folder_checked = false, torn = false;
    struct file *file, *tmp;

    HASH_ITER (hh, f->files, file, tmp) {
        uint64_t due = file->gone_ms != 0 ? file->gone_ms : file->retry_ms;

        torn = torn || file->torn > 0;
        if (due != 0 && due <= now && file->gone_ms != 0 && !folder_checked) {
            watch_check(f); /* a folder that is gone takes no object with it */
            folder_checked = true;
            due = file->gone_ms;
        }
        if (due == 0 || file->reading)
            continue;
        if (due > now) {
            next = due < next ? due : next;
            continue;
        }
        if (file->gone_ms == 0) {
            queue(file);
        } else if (is_there(file)) { /* made anew; when it is complete it tells */
            file->gone_ms = 0;
            file->holder.leaving = false;
        } else {
            remove_file(file);
        }
    }

    if (f->rescan_ms != 0 && f->rescan_ms <= now && f->state == WATCH_FOLDER) {
        f->rescan_ms = 0;
        folder_rescan(f);
    }
    if (f->rescan_ms != 0 && f->state == WATCH_FOLDER)
        next = f->rescan_ms < next ? f->rescan_ms : next;

    retry_blocked(f);
    done = TAILQ_EMPTY(&f->pending) ? UINT64_MAX : TAILQ_FIRST(&f->pending)->seq;
    claims_flush(&f->claims, done);
    HASH_ITER (hh, f->files, file, tmp) {
        if (file->report_seq != 0 && file->report_seq < done)
            report(file);
    }
    if (!f->first_done && !torn && done > f->first_seq) {
        f->first_done = true;
        src_store_set_ready(f->store);
        if (f->first_set != NULL)
            f->first_set(f->arg);
    }
    if (f->closing) /* by first_set */
        return;
    if (next != UINT64_MAX)
        uv_timer_start(&f->timer, on_timer, next - now, 0);
}

static void free_folder(struct src_folder *f)
{
    claims_done(&f->claims);
    free(f->dir);
    free(f);
}

/* Starts what may start; in closing, ends when nothing is under way. */
static void pump(struct src_folder *f)
{
    struct file *file, *tmp;

    if (f->closing) {
        if (f->open_handles == 0 && f->n_reading == 0)
            free_folder(f);
        return;
    }
    TAILQ_FOREACH_SAFE (file, &f->pending, pending, tmp) {
        if (f->n_reading >= SRC_FOLDER_READS_MAX)
            break;
        if (file->queued)
            start_read(file);
    }
}

/* ---- called by watch.c ------------------------------------------------------------------------ */

void folder_touched(struct src_folder *f, const char *name)
{
    struct file *file = manifest_ignored(name) ? NULL : find_or_add(f, name);

    if (file == NULL)
        return;
    queue(file);
    pump(f);
}

void folder_retouched(struct src_folder *f, const char *name)
{
    struct file *file = find(f, name);

    if (file != NULL && has_problems(&file->holder.problems))
        folder_touched(f, name);
}

void folder_missing(struct src_folder *f, const char *name)
{
    struct file *file = find(f, name);

    if (file == NULL)
        return;
    file->gone_ms = clock_mono_ms() + SRC_FOLDER_SETTLE_MS;
    file->holder.leaving = true;
    if (!uv_is_active((uv_handle_t *)&f->timer) || uv_timer_get_due_in(&f->timer) > SRC_FOLDER_SETTLE_MS)
        uv_timer_start(&f->timer, on_timer, SRC_FOLDER_SETTLE_MS, 0);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, so that which of two files comes first is the same at each start. */
static char **list_names(struct src_folder *f, size_t *ret_n)
{
    size_t n = 0, room = 0;
    char **names = NULL;
    struct dirent *entry;
    DIR *dir = opendir(f->dir);

    *ret_n = 0;
    if (dir == NULL) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            rescan_later(f);
        return NULL;
    }
    while (n < NAMES_MAX && (entry = readdir(dir)) != NULL) {
        if (manifest_ignored(entry->d_name))
            continue;
        if (n == room) {
            char **more = reallocarray(names, room == 0 ? 64 : room * 2, sizeof(*names));

            if (more == NULL) {
                rescan_later(f);
                break;
            }
            names = more;
            room = room == 0 ? 64 : room * 2;
        }
        names[n] = strdup(entry->d_name);
        if (names[n] == NULL) {
            rescan_later(f);
            break;
        }
        n++;
    }
    closedir(dir);
    if (n > 0)
        qsort(names, n, sizeof(*names), compare_names);
    *ret_n = n;
    return names;
}

void folder_rescan(struct src_folder *f)
{
    struct file *file, *tmp;
    size_t n;
    char **names = list_names(f, &n);

    f->scans++;
    for (size_t i = 0; i < n; i++) {
        file = find_or_add(f, names[i]);
        if (file != NULL) {
            file->scan = f->scans;
            queue(file);
        }
        free(names[i]);
    }
    free(names);
    HASH_ITER (hh, f->files, file, tmp) {
        if (file->scan != f->scans)
            folder_missing(f, file->name);
    }
    pump(f);
}

void folder_lost(struct src_folder *f)
{
    struct file *file, *tmp;

    HASH_ITER (hh, f->files, file, tmp) {
        file->gone_ms = file->retry_ms = 0;
        file->holder.leaving = false;
    }
}

void folder_handle_closed(uv_handle_t *handle)
{
    struct src_folder *f = handle->data;

    f->open_handles--;
    pump(f);
}

/* ---- life ----------------------------------------------------------------------------------- */

enum err_code src_folder_open(struct src_folder **ret, uv_loop_t *loop, const char *dir,
                              struct src_store *store, src_file_fn on_file, void (*first_set)(void *arg),
                              void *arg, struct err *e)
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
    TAILQ_INIT(&f->pending);
    if (watch_open(f, e) != ERR_OK) {
        free(f->dir);
        free(f);
        return err_wrap(e, "manifest folder %s", dir);
    }
    uv_timer_init(loop, &f->timer);
    f->timer.data = f;
    f->open_handles++;
    uv_timer_start(&f->timer, on_timer, 0, 0); /* the first set, should there be no file */
    if (f->state == WATCH_FOLDER)
        folder_rescan(f);
    f->first_seq = f->last_seq;
    *ret = f;
    return ERR_OK;
}

enum err_code src_folder_seed(struct src_folder *f, const char *name, struct api_pod *pod, struct err *e)
{
    struct file *file = manifest_ignored(name) || strchr(name, '/') != NULL ? NULL : find_or_add(f, name);
    struct api_objects objects = { 0 };
    const struct api_objects *held;

    if (file == NULL)
        return err_set(e, ERR_INVALID, "manifest file \"%s\": not a name that counts, or no room for it",
                       name);
    held = &file->holder.in_force; /* other pods of the same file */
    objects.v = calloc(held->n + 1, sizeof(*objects.v));
    if (objects.v == NULL)
        return err_nomem(e);
    for (; objects.n < held->n; objects.n++)
        objects.v[objects.n] = src_object_ref(&held->v[objects.n]);
    objects.v[objects.n++] =
        (struct api_object){ .kind = API_KIND_POD, .document = (int)objects.n, .pod = api_pod_ref(pod) };
    if (!claims_adopt(&f->claims, &file->holder, &objects, false, f->last_seq))
        return err_set(e, ERR_EXISTS, "manifest file %s: another file holds its pod already", name);
    if (f->state == WATCH_FOLDER && file->scan != f->scans)
        folder_missing(f, name);
    return ERR_OK;
}

const char *src_folder_file_of_pod(const struct src_folder *f, const char *namespace_, const char *name)
{
    return claims_owner(&f->claims, API_KIND_POD, namespace_, name);
}

void src_folder_close(struct src_folder *f)
{
    struct file *file, *tmp;

    if (f == NULL)
        return;
    assert(!f->closing);
    f->closing = true;
    watch_close(f);
    uv_close((uv_handle_t *)&f->timer, folder_handle_closed);
    HASH_ITER (hh, f->files, file, tmp) {
        if (!file->reading || file->read)
            free_file(file);
    }
}
