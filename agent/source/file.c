/* SPDX-License-Identifier: Apache-2.0 */
/* file - a file of the folder: its entry in the table, and its state as reported. */
#include "agent/source/internal.h"

#include "base/log.h"
#include "base/siphash.h"

#include <string.h>

/* ---- the table ---- */

struct file *file_find(struct src_folder *f, const char *name)
{
    struct file *file;

    HASH_FIND_STR(f->files, name, file);
    return file;
}

struct file *file_find_or_add(struct src_folder *f, const char *name)
{
    struct file *file = file_find(f, name);

    if (file != NULL)
        return file;
    if (f->n_files >= SRC_FOLDER_FILES_MAX) {
        if (!f->full)
            log_warn("too many manifest files; ignoring the others", F_STR("path", f->dir),
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
    folder_rescan_later(f);
    log_error("cannot load manifest file, will retry: out of memory", F_STR("path", f->dir),
              F_STR("file", name));
    return NULL;
}

void file_free(struct file *file)
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
    err_kept_drop_text(&file->result);
    free(file);
}

void file_remove(struct file *file)
{
    struct src_folder *f = file->folder;

    object_claims_release(&f->claims, &file->holder, f->last_seq);
    file_free(file);
}

/* ---- the report ---- */

bool problems_any(const struct api_problems *p)
{
    return p->n > 0 || p->dropped > 0; /* only `dropped`: there was no memory for the text */
}

struct src_file src_file_describe(const struct file *file)
{
    return (struct src_file){
        .dir = file->folder->dir,
        .name = file->name,
        .ok = !problems_any(&file->holder.problems),
        .stale = problems_any(&file->holder.problems) && file->holder.in_force.n > 0,
        .problems = file->holder.problems.v,
        .n_problems = file->holder.problems.n,
        .in_force = file->holder.in_force.v,
        .n_objects = file->holder.in_force.n,
        .read_ns = file->read_ns,
    };
}

/* 0 if there are none. */
static uint64_t hash_problems(const struct src_file *f)
{
    uint64_t h = 0;

    for (size_t i = 0; i < f->n_problems; i++) {
        h = siphash_part(h, &f->problems[i].place, sizeof(f->problems[i].place));
        h = siphash_part(h, f->problems[i].field, strlen(f->problems[i].field));
        h = siphash_part(h, f->problems[i].message, strlen(f->problems[i].message));
    }
    return f->n_problems > 0 ? h | 1 : 0;
}

void file_report(struct file *file)
{
    struct src_file seen = src_file_describe(file);
    uint64_t problems = hash_problems(&seen);
    bool known = problems != 0 && problems == file->told; /* another event, but nothing new to report */

    file->report_seq = 0;
    file->told = problems;
    if (!known && file->folder->on_file != NULL)
        file->folder->on_file(&seen, file->folder->arg);
}

static int src_file_by_name(const void *a, const void *b)
{
    return strcmp((*(struct file *const *)a)->name, (*(struct file *const *)b)->name);
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
    qsort(sorted, n, sizeof(*sorted), src_file_by_name);
    for (size_t i = 0; i < n; i++) {
        struct src_file seen = src_file_describe(sorted[i]);

        fn(&seen, arg);
    }
}
