/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that built an image, from its configuration: its author's text, bounded and unchecked. */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <stdio.h>
#include <string.h>

enum { HISTORY_MAX = 1000 };          /* maximum number of reported steps */
#define HISTORY_CONFIG_MAX (8u << 20) /* bytes of a configuration */

static enum err_code image_history_read(void *arg, struct err *e)
{
    struct img_task_run *run = arg;
    json_auto_t *config = NULL;
    json_t *history;
    str_auto text = NULL;
    size_t n = 0;

    if (fs_read_at(run->store->parts_fd, run->file, HISTORY_CONFIG_MAX, &text, &n, e) != ERR_OK)
        return err_wrap(e, "the image's configuration");
    if (json_parse(text, n, HISTORY_CONFIG_MAX, &config, "the image's configuration", e) != ERR_OK)
        return e->code;
    history = json_object_get(config, "history");
    run->answer = json_is_array(history) ? json_incref(history) : json_array();
    return run->answer != NULL ? ERR_OK : err_nomem(e);
}

/* One step; `layer` counts the layers so far. NULL: out of memory. */
static json_t *image_history_step(const struct img_image *image, const json_t *step, size_t *layer)
{
    const bool empty = json_is_true(json_object_get(step, "empty_layer"));
    const bool known = !empty && *layer < image->layer_dirs.n;
    const json_int_t bytes = known && image->layer_bytes != NULL ? (json_int_t)image->layer_bytes[*layer] : 0;

    *layer += known;
    return json_pack("{s:s*, s:s*, s:s*, s:s*, s:b, s:I}", "created", json_str(step, "created"), "createdBy",
                     json_str(step, "created_by"), "author", json_str(step, "author"), "comment",
                     json_str(step, "comment"), "emptyLayer", (int)empty, "sizeBytes", bytes);
}

static void image_history_on_read(struct op *op, const struct err *result)
{
    struct img_task_run *run = op->owner;
    const struct img_image *image = run->held[0]->image;
    json_auto_t *history = run->answer;
    json_t *items = json_array();
    struct err e = *result;
    size_t layer = 0;

    for (size_t i = 0; i < json_array_size(history) && i < HISTORY_MAX && e.code == ERR_OK; i++)
        if (json_array_append_new(items, image_history_step(image, json_array_get(history, i), &layer)) != 0)
            err_nomem(&e);
    run->answer = json_pack("{s:s, s:o, s:o}", "id", image->id, "names",
                            img_names_of(run->store, run->held[0]), "items", items);
    if (run->answer == NULL && e.code == ERR_OK)
        err_nomem(&e);
    img_task_end(run, &e);
}

void img_history_start(struct img_task *t, struct img_store *s, const char *reference, op_done_fn done,
                       void *owner)
{
    struct img_task_run *run = img_task_begin(t, s, "image history", reference, 0, done, owner);

    if (run == NULL)
        return;
    snprintf(run->file, sizeof(run->file), "%.64s" IMG_CONFIG, run->held[0]->image->id + strlen("sha256:"));
    work_start(&run->work, "image history", reference, image_history_read, run, s->loop,
               image_history_on_read, run);
}
