/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"
#include "base/codec/json.h"

#include <string.h>

#define EXPORT_DEADLINE_MS (2 * 60 * 60 * 1000) /* to a slow disk */
#define EXPORT_INPUT_MAX (1u << 20)

static void on_exported(struct op *op, const struct err *result)
{
    struct img_task_run *run = op->owner;
    struct err e = *result;

    if (e.code != ERR_OK)
        img_take_failure(run->proc.out.p, run->proc.out.n, &e);
    img_task_end(run, &e);
}

/* Adds the image's layers and the requested name; for an id, all names. */
static enum err_code add_parts(const struct img_task_run *run, const char *reference, struct buf *parts,
                               struct err *e)
{
    json_auto_t *all = img_names_of(run->store, run->held[0]);
    char full[IMG_NAME_MAX];
    const json_t *name;
    bool named = img_normalise(reference, full, ERR_IGNORED) == ERR_OK && json_has(all, full);
    size_t i;

    for (i = 0; i < run->held[0]->image->layer_dirs.n; i++)
        buf_addf(parts, "layer %s\n", img_layer_name(run->held[0]->image, i));
    json_array_foreach (all, i, name)
        if (!named || strcmp(json_string_value(name), full) == 0)
            buf_addf(parts, "name %s\n", json_string_value(name));
    return all == NULL || parts->failed ? err_nomem(e) : ERR_OK;
}

void img_export_start(struct img_task *t, struct img_store *s, const char *reference, const char *path,
                      op_done_fn done, void *owner)
{
    struct img_task_run *run =
        img_task_begin(t, s, "image export", reference, EXPORT_DEADLINE_MS, done, owner);
    str_auto layers = str_printf("%s/layers", s->dir);
    str_auto parts = str_printf("%s/parts", s->dir);
    buf_auto input = BUF_INIT(EXPORT_INPUT_MAX);
    struct proc_spec spec;
    struct err e = { 0 };

    if (run == NULL)
        return;
    if (layers == NULL || parts == NULL)
        err_nomem(&e);
    else if (path[0] != '/')
        err_set(&e, ERR_INVALID, "file \"%.300s\" is not an absolute path", path);
    if (e.code != ERR_OK || add_parts(run, reference, &input, &e) != ERR_OK) {
        img_task_end(run, &e);
        return;
    }
    spec = img_unpack_spec(s, reference,
                           (const char *const[]){ s->unpack_path, "--export", run->held[0]->image->id + 7,
                                                  "--out", path, "--layers", layers, "--parts", parts, NULL },
                           IMG_RECORD_MAX, EXPORT_DEADLINE_MS);
    spec.stdin_data = input.p;
    spec.stdin_size = input.n;
    proc_start(&run->proc, &spec, s->loop, on_exported, run);
}
