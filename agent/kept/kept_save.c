/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_save - seals due objects with coracle-seal and writes them on the pool, one batch at a time. A failure
 * leaves the file unchanged, and is retried after KEPT_FAILED_MS.
 */
#include "agent/kept/internal.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* ---- on the pool ---- */

static void save_file(const struct kept *k, struct kept_item *item)
{
    str_auto path = str_printf("%s/%s", k->o.dir, item->file);

    if (path == NULL) {
        err_nomem(&item->e);
    } else if (item->removed) {
        /* A removal that a power cut undoes is repeated by the next start's sweep. */
        if (unlink(path) != 0 && errno != ENOENT)
            err_sys(&item->e, errno, "remove %s", path);
        item->done = item->e.code == ERR_OK;
    } else if (item->bytes.n > 0) {
        item->done =
            fs_replace_at(AT_FDCWD, path, item->bytes.p, item->bytes.n, 0600, true, &item->e) == ERR_OK;
    }
}

static enum err_code save_files(void *kept, struct err *e)
{
    struct kept *k = kept;

    if (fs_mkdirs(k->o.dir, 0700, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < k->job.n; i++) {
        save_file(k, &k->job.items[i]);
        if (k->job.items[i].e.code != ERR_OK)
            *e = k->job.items[i].e;
    }
    return e->code;
}

/* ---- on the loop ---- */

static void save_again(struct kept_entry *t, bool removed)
{
    if (!removed)
        t->dirty = !t->dropped;
    t->due_ms = clock_mono_ms() + KEPT_FAILED_MS;
}

static void save_one_over(struct kept *k, const struct kept_item *item)
{
    struct kept_entry *t = kept_find(k, item->name);

    if (t == NULL)
        return;
    t->in_job = false;
    if (!item->done) {
        save_again(t, item->removed);
        return;
    }
    t->on_disk = !item->removed;
    t->written_ms = clock_mono_ms();
    t->hash = item->removed ? 0 : kept_hash(item->text.p, item->text.n);
    if (item->removed && t->dropped && !t->dirty)
        kept_entry_free(k, t);
}

static void save_on_written(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;

    for (size_t i = 0; i < k->job.n; i++)
        save_one_over(k, &k->job.items[i]);
    if (result->code == ERR_OK)
        free(take_ptr(&k->save_trouble));
    else if (result->code != ERR_CANCELLED)
        kept_trouble(&k->save_trouble, "cannot write objects for a start without the apiserver", result);
    kept_over(k);
}

static void save_write(struct kept *k)
{
    work_start(&k->work, "write kept objects", NULL, save_files, k, k->o.loop, save_on_written, k);
}

static void save_on_sealed(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;
    struct err e = *result;
    char head[KEPT_HEAD_SIZE];
    struct str sealed;
    size_t at = 0;

    for (size_t i = 0; i < k->job.n && e.code == ERR_OK; i++) {
        struct kept_item *item = &k->job.items[i];

        if (!item->sealed || item->removed)
            continue;
        if (batch_answer_next(k->proc.out.p, k->proc.out.n, &at, &sealed, &e) != ERR_OK || sealed.p == NULL)
            continue;
        kept_file_head(item->name, true, head);
        buf_adds(&item->bytes, head);
        buf_add(&item->bytes, sealed.p, sealed.n);
        if (item->bytes.failed)
            buf_reset(&item->bytes);
    }
    if (e.code != ERR_OK && e.code != ERR_CANCELLED)
        kept_trouble(&k->save_trouble, "Secrets cannot be sealed", &e);
    save_write(k); /* plain files need no key */
}

static void save_with_key(struct kept *k, bool ok)
{
    struct buf request = BUF_INIT(BATCH_MAX);
    char head[KEPT_HEAD_SIZE];

    if (!ok || k->closing) {
        save_write(k);
        return;
    }
    if (buf_room(&request, BATCH_KEY_SIZE + 2 * KEPT_BATCH_BYTES) != NULL)
        buf_add(&request, k->key, BATCH_KEY_SIZE);
    for (size_t i = 0; i < k->job.n; i++) {
        const struct kept_item *item = &k->job.items[i];

        if (!item->sealed || item->removed)
            continue;
        kept_file_head(item->name, true, head);
        batch_add(&request, BATCH_SEAL, (struct str){ head, strlen(head) },
                  (struct str){ item->text.p, item->text.n });
    }
    kept_seal_start(k, &request, save_on_sealed);
}

/* Whether the entry was added to the job. */
static bool save_add(struct kept *k, struct kept_entry *t)
{
    struct buf text = BUF_INIT(KEPT_TEXT_MAX);
    struct kept_item *item;

    if (!t->dropped) {
        t->dirty = false;
        if (!k->o.content(t->name, &text, k->o.arg) || text.failed ||
            (t->on_disk && t->hash == kept_hash(text.p, text.n))) {
            if (text.failed)
                log_warn("not storing an object on disk: it is too large", F_STR("name", t->name));
            t->written_ms = clock_mono_ms();
            kept_text_wipe(&text);
            return false;
        }
    }
    item = kept_job_add(k);
    if (item == NULL) {
        kept_text_wipe(&text);
        save_again(t, t->dropped);
        return false;
    }
    snprintf(item->name, sizeof(item->name), "%s", t->name);
    kept_file_name(t->name, item->file);
    item->sealed = t->sealed;
    item->removed = t->dropped;
    item->text = text;
    t->in_job = true;
    if (!item->removed && !item->sealed)
        kept_file_add_plain(&item->bytes, item->name, text.p, text.n);
    return true;
}

bool kept_save_start(struct kept *k)
{
    uint64_t now = clock_mono_ms();
    struct kept_entry *t, *tmp;
    bool sealed = false;
    size_t bytes = 0;

    if (!k->loaded)
        return false; /* the files on disk are not known yet */
    HASH_ITER (hh, k->entries, t, tmp) {
        if ((!t->dirty && !t->dropped) || t->due_ms > now)
            continue;
        if (k->job.n >= KEPT_BATCH_FILES || bytes >= KEPT_BATCH_BYTES)
            break; /* kept_over() starts the next batch */
        if (!save_add(k, t))
            continue;
        bytes += k->job.items[k->job.n - 1].text.n;
        sealed = sealed || (t->sealed && !t->dropped);
    }
    if (k->job.n == 0)
        return false;
    k->state = KEPT_SAVING;
    if (sealed)
        kept_key_need(k, true, save_with_key);
    else
        save_write(k);
    return true;
}
