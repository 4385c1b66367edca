/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_load - the files of the folder, read in batches on the pool; coracle-seal opens the sealed ones. A
 * file whose text fails its check is set aside. A file that cannot be read is kept, and a later load may read
 * it.
 */
#include "agent/kept/internal.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <string.h>

static void load_next(struct kept *k);

/* ---- on the pool ---- */

static bool load_on_name(const char *name, void *arg)
{
    struct kept *k = arg;

    return !kept_file_is_name(name) || strs_add(&k->files, name);
}

static enum err_code load_list(void *kept, struct err *e)
{
    struct kept *k = kept;

    if (kept_key_look(k, e) != ERR_OK)
        return err_wrap(e, "read the key");
    if (presence_is_unknown(fs_list(AT_FDCWD, k->o.dir, load_on_name, k, e)))
        return e->code;
    return ERR_OK;
}

static void load_set_aside(struct kept *k, struct kept_item *item)
{
    char aside[DAMAGED_FILE_NAME_SIZE] = "";
    struct err e = { 0 };
    fd_auto dir = open(k->o.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    item->damaged = true;
    if (dir < 0 || damaged_file_set_aside(dir, item->file, aside, &e) != ERR_OK)
        snprintf(aside, sizeof(aside), "%s", item->file);
    log_error("a kept object is damaged and was set aside; its pods wait for the apiserver",
              F_STR("object", item->name[0] != '\0' ? item->name : "?"), F_STR("folder", k->o.dir),
              F_STR("file", aside), F_ERR(&item->e));
}

/* Reads into item->bytes; for a plain file also into item->text. */
static void load_file(struct kept *k, struct kept_item *item)
{
    str_auto path = str_printf("%s/%s", k->o.dir, item->file);
    str_auto text = NULL;
    struct kept_content c;
    char expected[KEPT_FILE_SIZE];
    size_t n = 0;

    if (path == NULL || fs_read_at(AT_FDCWD, path, KEPT_FILE_MAX, &text, &n, &item->e) != ERR_OK)
        return;
    if (kept_file_read(text, n, &c, &item->e) != ERR_OK) {
        load_set_aside(k, item);
        return;
    }
    strcpy(item->name, c.name);
    kept_file_name(c.name, expected);
    if (strcmp(expected, item->file) != 0) {
        err_set(&item->e, ERR_DATA_LOSS, "it belongs to another object: %.300s", c.name);
        load_set_aside(k, item);
        return;
    }
    item->sealed = c.sealed;
    buf_add(c.sealed ? &item->bytes : &item->text, c.sealed ? text : c.body.p, c.sealed ? n : c.body.n);
    if (buf_check(c.sealed ? &item->bytes : &item->text, &item->e) == ERR_OK)
        item->done = !c.sealed;
}

static enum err_code load_files(void *kept, struct err *e)
{
    struct kept *k = kept;
    size_t bytes = 0;

    while (k->next_file < k->files.n && bytes < KEPT_BATCH_BYTES) {
        struct kept_item *item = kept_job_add(k);

        if (item == NULL && k->job.n == 0)
            return err_nomem(e);
        if (item == NULL)
            break;
        snprintf(item->file, sizeof(item->file), "%s", k->files.v[k->next_file++]);
        load_file(k, item);
        bytes += item->bytes.n + item->text.n;
    }
    return ERR_OK;
}

/* ---- on the loop ---- */

static void load_give(struct kept *k, const struct kept_item *item)
{
    struct kept_entry *t;

    if (item->damaged || item->name[0] == '\0')
        return;
    t = kept_find(k, item->name);
    if (t == NULL)
        t = kept_entry_of(k, item->name, item->sealed);
    if (t == NULL)
        return;
    t->on_disk = true;
    if (!item->done)
        return; /* the file exists, but cannot be opened now */
    if (t->hash == 0)
        t->hash = kept_hash(item->text.p, item->text.n);
    if (!t->dirty && !t->dropped)
        k->o.on_object(item->name, item->sealed, item->text.p, item->text.n, k->o.arg);
}

static void load_batch_over(struct kept *k)
{
    for (size_t i = 0; i < k->job.n; i++)
        load_give(k, &k->job.items[i]);
    kept_job_done(k);
    load_next(k);
}

static void load_on_opened(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;
    struct err e = *result;
    struct str text;
    size_t at = 0;

    for (size_t i = 0; i < k->job.n && e.code == ERR_OK; i++) {
        struct kept_item *item = &k->job.items[i];

        if (!item->sealed || item->damaged || item->bytes.n == 0)
            continue;
        if (batch_answer_next(k->proc.out.p, k->proc.out.n, &at, &text, &e) != ERR_OK)
            break;
        if (text.p == NULL) {
            err_set(&item->e, ERR_DATA_LOSS,
                    "it was sealed with another key, under another name, or is damaged");
            load_set_aside(k, item);
            continue;
        }
        buf_add(&item->text, text.p, text.n);
        item->done = !item->text.failed;
    }
    explicit_bzero(k->proc.out.p, k->proc.out.n);
    if (e.code != ERR_OK && e.code != ERR_CANCELLED)
        log_warn("kept objects cannot be opened; their pods wait for the apiserver", F_ERR(&e));
    load_batch_over(k);
}

static void load_with_key(struct kept *k, bool ok)
{
    struct buf request = BUF_INIT(BATCH_MAX);
    struct kept_content c;
    struct err e = { 0 };

    if (!ok || k->closing) {
        k->refused_once = true; /* so the TPM is not asked for each batch */
        load_batch_over(k);
        return;
    }
    if (buf_room(&request, BATCH_KEY_SIZE + 2 * KEPT_BATCH_BYTES) != NULL)
        buf_add(&request, k->key, BATCH_KEY_SIZE);
    for (size_t i = 0; i < k->job.n; i++) {
        const struct kept_item *item = &k->job.items[i];

        if (item->sealed && !item->damaged && item->bytes.n > 0 &&
            kept_file_read(item->bytes.p, item->bytes.n, &c, &e) == ERR_OK)
            batch_add(&request, BATCH_OPEN, c.head, c.body);
    }
    kept_seal_start(k, &request, load_on_opened);
}

static void load_on_files(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;
    bool sealed = false;

    if (result->code != ERR_OK) {
        log_warn("kept objects cannot be read", F_ERR(result));
        k->next_file = k->files.n;
    }
    for (size_t i = 0; i < k->job.n; i++) {
        const struct kept_item *item = &k->job.items[i];

        if (item->e.code != ERR_OK && !item->damaged)
            log_warn("a kept object cannot be read", F_STR("folder", k->o.dir), F_STR("file", item->file),
                     F_ERR(&item->e));
        sealed = sealed || item->bytes.n > 0;
    }
    if (sealed && result->code == ERR_OK && !k->refused_once)
        kept_key_need(k, false, load_with_key);
    else
        load_batch_over(k);
}

static void load_over(struct kept *k)
{
    strs_done(&k->files);
    k->loaded = true;
    k->o.on_loaded(k->o.arg);
    if (k->wanted != NULL)
        kept_sweep(k, k->wanted);
    kept_over(k);
}

static void load_next(struct kept *k)
{
    if (k->closing || k->next_file >= k->files.n) {
        load_over(k);
        return;
    }
    work_start(&k->work, "read kept objects", NULL, load_files, k, k->o.loop, load_on_files, k);
}

static void load_on_list(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;

    kept_key_looked(k);
    if (result->code != ERR_OK && result->code != ERR_CANCELLED)
        kept_trouble(&k->save_trouble, "kept objects cannot be read", result);
    load_next(k);
}

void kept_load_start(struct kept *k)
{
    k->load_due = false;
    k->state = KEPT_LOADING;
    k->refused_once = false;
    k->next_file = 0;
    strs_done(&k->files);
    work_start(&k->work, "list kept objects", NULL, load_list, k, k->o.loop, load_on_list, k);
}
