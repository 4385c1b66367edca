/* SPDX-License-Identifier: Apache-2.0 */
/* Another name for a present image. coracle-unpack computes the name of its record, as for a pull. */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define TAG_DEADLINE_MS (60 * 1000)
#define TAG_ANSWER_MAX (64u * 1024)

static enum err_code image_tag_write(void *arg, struct err *e)
{
    const struct img_task_run *run = arg;

    return fs_replace_at(run->store->refs_fd, run->file, run->text, strlen(run->text), 0600, true, e);
}

static void image_tag_end(struct img_task_run *run, const struct err *result)
{
    img_writer_end(run->store, &run->writer);
    img_task_end(run, result);
}

static void image_tag_on_written(struct op *op, const struct err *result)
{
    struct img_task_run *run = op->owner;
    struct img_store *s = run->store;
    struct err e = *result;
    char hex[65];

    snprintf(hex, sizeof(hex), "%.64s", run->file);
    if (e.code == ERR_OK && img_keep_name(s, run->name, hex, NULL, run->held[0], &e) == ERR_OK) {
        log_info("image tagged", F_STR("image", run->name), F_STR("imageID", run->held[0]->image->id));
        if (s->on_added != NULL)
            s->on_added(run->name, s->on_added_arg);
    }
    image_tag_end(run, &e);
}

static void image_tag_on_turn(struct img_writer *w)
{
    struct img_task_run *run = container_of(w, struct img_task_run, writer);

    work_start(&run->work, "image record", run->name, image_tag_write, run, run->store->loop,
               image_tag_on_written, run);
}

/* The answer of coracle-unpack: {"names": [{"name", "ref"}]}. */
static enum err_code image_tag_plan(struct img_task_run *run, struct err *e)
{
    json_auto_t *said = NULL, *record = NULL;
    const char *ref;

    if (json_parse(run->proc.out.p, run->proc.out.n, TAG_ANSWER_MAX, &said, "coracle-unpack", e) != ERR_OK)
        return e->code;
    ref = json_str(json_array_get(json_object_get(said, "names"), 0), "ref");
    if (ref == NULL || strlen(ref) != 64 || strspn(ref, "0123456789abcdef") != 64)
        return err_set(e, ERR_INVALID, "coracle-unpack: invalid answer");
    record = json_pack("{s:i, s:s, s:s}", "version", IMG_RECORD_VERSION, "name", run->name, "id",
                       run->held[0]->image->id);
    if (record == NULL || (run->text = json_text(record)) == NULL)
        return err_nomem(e);
    snprintf(run->file, sizeof(run->file), "%s.json", ref);
    return ERR_OK;
}

static void image_tag_on_hashed(struct op *op, const struct err *result)
{
    struct img_task_run *run = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK)
        ERR_IGNORE(image_tag_plan(run, &e)); /* the error is in *e */
    if (e.code == ERR_OK)
        img_writer_start(run->store, &run->writer, image_tag_on_turn);
    else
        img_task_end(run, &e);
}

void img_tag_start(struct img_task *t, struct img_store *s, const char *reference, const char *name,
                   op_done_fn done, void *owner)
{
    struct img_task_run *run = img_task_begin(t, s, "image tag", reference, TAG_DEADLINE_MS, done, owner);
    char full[IMG_NAME_MAX];
    const char *const argv[] = { s->unpack_path, "--hash-name", full, NULL };
    struct proc_spec spec;
    struct err e = { 0 };

    if (run == NULL)
        return;
    if (img_normalise(name, full, &e) == ERR_OK && strchr(full, '@') != NULL)
        err_set(&e, ERR_INVALID, "\"%.300s\" has a digest: a name is REPOSITORY[:TAG]", name);
    if (e.code == ERR_OK && (run->name = strdup(full)) == NULL)
        err_nomem(&e);
    if (e.code != ERR_OK) {
        img_task_end(run, &e);
        return;
    }
    spec = img_unpack_spec(s, reference, argv, TAG_ANSWER_MAX, TAG_DEADLINE_MS);
    proc_start(&run->proc, &spec, s->loop, image_tag_on_hashed, run);
}
