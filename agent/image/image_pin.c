/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <stdio.h>
#include <string.h>

static enum err_code write_record(void *arg, struct err *e)
{
    const struct img_task_run *run = arg;

    return fs_replace_at(run->store->images_fd, run->file, run->text, strlen(run->text), 0600, true, e);
}

static void image_pin_end(struct img_task_run *run, const struct err *result)
{
    img_writer_end(run->store, &run->writer);
    img_task_end(run, result);
}

/* Updates the table after the disk. */
static void image_pin_on_written(struct op *op, const struct err *result)
{
    struct img_task_run *run = op->owner;
    struct img_image *image = run->held[0]->image;

    if (result->code == ERR_OK)
        image->pinned = run->pin;
    image_pin_end(run, result);
}

static enum err_code image_pin_start(struct img_task_run *run, struct err *e)
{
    struct img_image *image = run->held[0]->image;
    json_auto_t *record = img_record_encode(image);

    if (record == NULL || json_object_set_new(record, "pinned", json_boolean(run->pin)) != 0 ||
        (run->text = json_text(record)) == NULL)
        return err_nomem(e);
    snprintf(run->file, sizeof(run->file), "%s.json", image->id + 7);
    work_start(&run->work, "image record", image->id, write_record, run, run->store->loop,
               image_pin_on_written, run);
    return ERR_OK;
}

static void image_pin_on_writers_turn(struct img_writer *w)
{
    struct img_task_run *run = container_of(w, struct img_task_run, writer);
    struct err e = { 0 };

    if (run->held[0]->image->pinned == run->pin || image_pin_start(run, &e) != ERR_OK)
        image_pin_end(run, &e);
}

void img_pin_start(struct img_task *t, struct img_store *s, const char *reference, bool pin, op_done_fn done,
                   void *owner)
{
    struct img_task_run *run = img_task_begin(t, s, "image pin", reference, 0, done, owner);

    if (run == NULL)
        return;
    run->pin = pin;
    img_writer_start(s, &run->writer, image_pin_on_writers_turn);
}
