/* SPDX-License-Identifier: Apache-2.0 */
/* reads - reads the folder's files on the worker pool: one read per file at a time, in order, so that the
 * newest content wins. Results are applied here; consequences for other files are handled in folder.c. */
#include "agent/source/internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <string.h>

enum { TORN_MAX = 8 /* reads that a writer disturbed before the problem is reported: 2 s */ };

/* ---- in order ---- */

void reads_queue(struct file *file)
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

/* ---- results ---- */

/* Refuses a file that has become empty: it is most likely being rewritten, since an empty file is a valid
 * YAML stream. Pods are ended by removing their file. */
static void refuse_emptied(struct file *file)
{
    struct manifest *m = &file->manifest;

    if (m->objects.n == 0 && !problems_any(&m->problems) && file->holder.in_force.n > 0)
        api_problems_add(&m->problems, file->name,
                         "has no objects any more; to remove its objects, remove the file");
}

/* Another file defines an object of this one. That file may be about to release it; or this file is a
 * program's temporary file, which will replace the other. */
static void report_later(struct file *file)
{
    file->report_seq = file->folder->last_seq;
    file->report_ms = file->folder->first_done ? clock_mono_ms() + SRC_FOLDER_SETTLE_MS : 0;
}

static void reads_apply(struct file *file, const struct err *result)
{
    struct src_folder *f = file->folder;
    struct manifest *m = &file->manifest;

    file->read_ns = m->read_ns;
    free(file->target_name);
    file->target_name = take_ptr(&m->target_name);
    if (watch_target(f, file, m->target_dir))
        file->again = true; /* the target may have changed between the read and the watch */

    file->torn = m->torn ? file->torn + 1 : 0;
    if (m->torn && file->torn < TORN_MAX) {
        file->retry_ms = clock_mono_ms() + SRC_FOLDER_SETTLE_MS;
        return;
    }
    if (m->torn)
        api_problems_add(&m->problems, file->name, "is constantly being written to");
    file->torn = 0;
    if (result->code != ERR_OK)
        api_problems_add(&m->problems, file->name, "%s", result->text);
    if (result->code == ERR_EXHAUSTED || m->lacking)
        file->retry_ms = clock_mono_ms() + LACKING_RETRY_MS;
    refuse_emptied(file);
    if (!problems_any(&m->problems)) {
        object_claims_adopt(&f->claims, &file->holder, &m->objects, true, f->last_seq);
    } else {
        api_problems_hold_back(&m->problems, m->objects.v, m->objects.n);
        api_objects_done(&file->holder.waiting);
        file->holder.waiting = (struct api_objects){ 0 };
        file->holder.blocked = false;
        api_problems_done(&file->holder.problems);
        file->holder.problems = m->problems;
        m->problems = (struct api_problems){ 0 };
    }
    if (file->holder.blocked)
        report_later(file);
    else
        file_report(file);
}

static void finish_read(struct file *file)
{
    struct src_folder *f = file->folder;
    const struct err result = err_kept_get(&file->result);
    bool again;

    err_kept_drop_text(&file->result);
    TAILQ_REMOVE(&f->pending, file, pending);
    file->reading = file->read = false;
    if (file->manifest.missing) {
        if (!file->again && f->state == WATCH_FOLDER && file->gone_ms == 0)
            folder_missing(f, file->name, SRC_FOLDER_SETTLE_MS);
    } else {
        reads_apply(file, &result);
    }
    manifest_done(&file->manifest);
    file->reads_applied = file->reads_begun;
    again = file->again;
    file->again = false;
    if (again)
        reads_queue(file);
}

/* The first set is applied in the order of names, so that the same one of two files is used at each start;
 * later files are applied as they are read. */
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

/* ---- on the worker pool ---- */

static void reads_on_read(struct op *op, const struct err *result)
{
    struct file *file = op->owner;
    struct src_folder *f = file->folder;

    f->n_reading--;
    if (f->closing) {
        file_free(file);
        folder_end(f);
        return;
    }
    file->read = true;
    err_keep(&file->result, result);
    finish_reads(f);
    folder_settle(f);
    reads_start(f);
}

static void reads_start_read(struct file *file)
{
    struct src_folder *f = file->folder;

    file->queued = false;
    file->reading = true;
    file->reads_begun++;
    f->n_reading++;
    file->manifest.dir = strdup(f->dir);
    file->manifest.name = strdup(file->name);
    file->manifest.node_name = f->node_name;
    if (file->manifest.dir == NULL || file->manifest.name == NULL) {
        log_error("cannot read manifest file, will retry: out of memory", F_STR("file", file->name));
        folder_rescan_later(f);
        manifest_done(&file->manifest);
        TAILQ_REMOVE(&f->pending, file, pending);
        file->reading = false;
        f->n_reading--;
        return;
    }
    work_start(&file->work, "read manifest", file->name, manifest_read, &file->manifest, f->loop,
               reads_on_read, file);
}

void reads_start(struct src_folder *f)
{
    struct file *file, *tmp;

    if (f->closing)
        return;
    TAILQ_FOREACH_SAFE (file, &f->pending, pending, tmp) {
        if (f->n_reading >= SRC_FOLDER_READS_MAX)
            break;
        if (file->queued)
            reads_start_read(file);
    }
}
