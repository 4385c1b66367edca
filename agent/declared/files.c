/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of declarations: watched by inotify, read as a whole on the pool. */
#include "agent/declared/internal.h"

#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

static const uint32_t dir_mask = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                 IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
static const uint32_t parent_mask = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

static void file_done(struct declared_file *f)
{
    free(f->name);
    decl_done(&f->decl);
    strs_done(&f->problems);
    *f = (struct declared_file){ 0 };
}

/* ---- reading, on the pool ---- */

static bool is_declaration(const char *name)
{
    return name[0] != '.' && name[0] != '#' &&
           (str_ends(name, ".yaml") || str_ends(name, ".yml") || str_ends(name, ".json"));
}

struct names {
    struct strs v;
    bool no_memory;
};

static bool take_name(const char *name, void *arg)
{
    struct names *n = arg;

    n->no_memory = is_declaration(name) && !strs_add(&n->v, name);
    return !n->no_memory;
}

static bool add_problem(struct strs *to, const struct api_problem *p)
{
    buf_auto text = BUF_INIT(2000);

    if (p->document > 1)
        buf_addf(&text, "document %d, ", p->document);
    if (p->place.line > 0)
        buf_addf(&text, "line %u, column %u: ", p->place.line, p->place.column);
    if (p->field != NULL && p->field[0] != '\0')
        buf_addf(&text, "%s: ", p->field);
    buf_adds(&text, p->message);
    return strs_add(to, text.p);
}

static enum err_code parse_file(struct declared_file *f, const char *text, size_t size, struct err *e)
{
    struct api_problems problems = { 0 };
    bool ok = true;

    ERR_IGNORE(decl_parse(f->name, text, size, &f->decl, &problems, e));
    for (size_t i = 0; i < problems.n; i++)
        ok = add_problem(&f->problems, &problems.v[i]) && ok;
    api_problems_done(&problems);
    return e->code != ERR_OK ? e->code : ok ? ERR_OK : err_nomem(e);
}

/* Reads without blocking on a FIFO in the folder. */
static enum err_code read_text(const char *path, char **ret, size_t *ret_n, struct err *e)
{
    fd_auto fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return err_sys(e, errno, "cannot be read");
    if (fstat(fd, &st) != 0)
        return err_sys(e, errno, "cannot be read");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "is not a file");
    if (st.st_size > DECL_FILE_MAX)
        return err_set(e, ERR_INVALID, "has %lld bytes, allowed are %d", (long long)st.st_size,
                       DECL_FILE_MAX);
    return fs_read_fd(fd, DECL_FILE_MAX, ret, ret_n, e);
}

/* If a file cannot be read, its earlier declarations still apply. */
static enum err_code read_one(struct declared_read *job, const char *name, struct err *e)
{
    str_auto path = str_printf("%s/%s", job->dir, name);
    struct declared_file *f = &job->v[job->n];
    struct err why = { 0 };
    str_auto text = NULL;
    size_t size = 0;

    if (path == NULL || (f->name = strdup(name)) == NULL)
        return err_nomem(e);
    job->n++;
    if (read_text(path, &text, &size, &why) == ERR_OK)
        return parse_file(f, text, size, e);
    job->again = job->again || (why.code != ERR_INVALID && why.code != ERR_NOT_FOUND);
    return strs_add(&f->problems, why.text) ? ERR_OK : err_nomem(e);
}

static enum err_code read_all(struct declared_read *job, struct strs *names, struct err *e)
{
    strs_sort(names);
    job->n_left_out = names->n > DECLARED_FILES_MAX ? names->n - DECLARED_FILES_MAX : 0;
    job->v = calloc(names->n + 1, sizeof(*job->v));
    if (job->v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < names->n && i < DECLARED_FILES_MAX; i++)
        if (read_one(job, names->v[i], e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code read_folder(void *arg, struct err *e)
{
    struct declared_read *job = arg;
    struct names names = { 0 };

    switch (presence_of(fs_list(AT_FDCWD, job->dir, take_name, &names, e))) {
    case PRESENCE_UNKNOWN:
        break;
    case PRESENCE_ABSENT:
        job->missing = true;
        break;
    case PRESENCE_PRESENT:
        ERR_IGNORE(names.no_memory ? err_nomem(e) : read_all(job, &names.v, e)); /* the error is in *e */
        break;
    }
    strs_done(&names.v);
    return e->code;
}

static void job_done(struct declared_read *job)
{
    for (size_t i = 0; i < job->n; i++)
        file_done(&job->v[i]);
    free(job->v);
    *job = (struct declared_read){ .dir = job->dir };
}

/* ---- applying ---- */

static struct declared_file *find_file(struct declared *d, const char *name)
{
    for (size_t i = 0; i < d->n_files; i++)
        if (strcmp(d->files[i].name, name) == 0)
            return &d->files[i];
    return NULL;
}

/* A file with problems keeps its earlier declarations. */
static void take_files(struct declared *d, struct declared_read *job)
{
    for (size_t i = 0; i < job->n; i++) {
        struct declared_file *f = &job->v[i], *old = find_file(d, f->name);
        struct strs now = f->problems;

        f->problems = (struct strs){ 0 };
        if (old != NULL) {
            if (now.n > 0) {
                decl_done(&f->decl);
                f->decl = old->decl;
                old->decl = (struct decl_file){ 0 };
            }
            f->problems = old->problems;
            old->problems = (struct strs){ 0 };
        }
        declared_set_problems(d, &f->problems, &now, f->name);
    }
    for (size_t i = 0; i < d->n_files; i++)
        file_done(&d->files[i]);
    free(d->files);
    d->files = take_ptr(&job->v);
    d->n_files = job->n;
    job->n = 0;
}

static void on_read(struct op *op, const struct err *result)
{
    struct declared *d = op->owner;
    struct declared_read *job = &d->job;
    struct strs now = { 0 };
    bool ok = true;

    if (d->cancelled) {
        job_done(job);
        if (d->closing)
            declared_end(d);
        return;
    }
    if (result->code != ERR_OK)
        ok = strs_add(&now, result->text);
    else if (job->missing && d->n_files > 0)
        ok = strs_add(&now, "the folder is gone; its declarations stay in force until it is back");
    else if (job->n_left_out > 0)
        ok = strs_take(
            &now, str_printf("more than %d files; %zu are ignored", DECLARED_FILES_MAX, job->n_left_out));
    declared_set_problems(d, &d->dir_problems, &now, d->o.dir);
    if (result->code == ERR_OK && !job->missing)
        take_files(d, job);
    if (result->code != ERR_OK || job->again || !ok)
        declared_ask_later(d, true);
    job_done(job);
    declared_nodes_look_start(d);
}

void declared_files_read_start(struct declared *d)
{
    declared_files_watch(d);
    work_start(&d->read, "read device declarations", d->o.dir, read_folder, &d->job, d->o.loop, on_read, d);
}

/* ---- watching ---- */

static void drop_watch(struct declared *d, int *wd)
{
    if (*wd >= 0)
        watch_set_remove(d->dir_watches, *wd);
    *wd = -1;
}

static int watch_parent(struct declared *d)
{
    char path[PATH_MAX];
    char *slash;
    int wd = -1;

    snprintf(path, sizeof(path), "%s", d->o.dir);
    while (wd < 0 && (slash = strrchr(path, '/')) != NULL && path[1] != '\0') {
        slash[slash == path ? 1 : 0] = '\0';
        wd = watch_set_add(d->dir_watches, path, parent_mask);
    }
    return wd;
}

/* Watches the folder; if it does not exist, the nearest folder above it. */
void declared_files_watch(struct declared *d)
{
    for (int i = 0; i < 2 && d->dir_wd < 0; i++) { /* the folder may appear before its parent is watched */
        d->dir_wd = watch_set_add(d->dir_watches, d->o.dir, dir_mask);
        if (d->dir_wd < 0) {
            int wd = watch_parent(d);
            if (wd != d->parent_wd)
                drop_watch(d, &d->parent_wd);
            d->parent_wd = wd;
        }
    }
    if (d->dir_wd >= 0)
        drop_watch(d, &d->parent_wd);
}

static void on_change(int wd, uint32_t mask, const char *name, void *arg)
{
    struct declared *d = arg;

    (void)name;
    if ((mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) != 0) {
        if (wd == d->dir_wd)
            drop_watch(d, &d->dir_wd);
        if (wd == d->parent_wd)
            drop_watch(d, &d->parent_wd);
        declared_files_watch(d);
    } else if (wd >= 0 && wd == d->parent_wd) {
        declared_files_watch(d);
        if (d->dir_wd < 0)
            return;
    }
    declared_ask(d, true);
}

enum err_code declared_files_open(struct declared *d, struct err *e)
{
    d->job.dir = (char *)d->o.dir;
    return watch_set_open(&d->dir_watches, d->o.loop, on_change, d, e);
}

void declared_files_close(struct declared *d)
{
    watch_set_close(d->dir_watches);
    for (size_t i = 0; i < d->n_files; i++)
        file_done(&d->files[i]);
    free(d->files);
    strs_done(&d->dir_problems);
}
