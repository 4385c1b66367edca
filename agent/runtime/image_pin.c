#include "agent/runtime/image_internal.h"

#include "base/fs.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

static enum err_code write_record(void *arg, struct err *e)
{
    const struct img_task_run *run = arg;

    return fs_replace_at(run->store->images_fd, run->file, run->text, strlen(run->text), 0600, true, e);
}

/* The table follows the disk. */
static void on_written(struct op *op, const struct err *result)
{
    struct img_task_run *run = op->owner;
    struct img_image *image = run->held[0]->image;

    if (result->code == ERR_OK)
        image->pinned = !image->pinned;
    img_task_end(run, result);
}

static enum err_code start(struct img_task_run *run, struct img_image *image, bool pin, struct err *e)
{
    json_auto_t *record = img_record_encode(image);

    if (record == NULL || json_object_set_new(record, "pinned", json_boolean(pin)) != 0 ||
        (run->text = json_text(record)) == NULL)
        return err_nomem(e);
    snprintf(run->file, sizeof(run->file), "%s.json", image->id + 7);
    work_start(&run->work, "image record", image->id, write_record, run, run->store->loop, on_written, run);
    return ERR_OK;
}

void img_pin_start(struct img_task *t, struct img_store *s, const char *reference, bool pin, op_done_fn done,
                   void *owner)
{
    struct img_task_run *run = img_task_begin(t, s, "image pin", reference, 0, done, owner);
    struct img_image *image = run != NULL ? run->held[0]->image : NULL;
    struct err e = { 0 };

    if (run == NULL)
        return;
    if (image->pinned == pin)
        img_task_end(run, &e);
    else if (img_job_holds(s, image->id) || run->held[0]->held > 1)
        img_task_end(
            run, (err_set(&e, ERR_UNAVAILABLE,
                          "image \"%.300s\" is just being brought, verified, exported or pinned", reference),
                  &e));
    else if (start(run, image, pin, &e) != ERR_OK)
        img_task_end(run, &e);
}
