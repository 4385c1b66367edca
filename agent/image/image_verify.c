/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"

#include <string.h>

/* Enough for half a terabyte on a slow disk. */
#define VERIFY_DEADLINE_MS (2 * 60 * 60 * 1000)
#define VERIFY_ANSWER_MAX (64u << 20)
#define VERIFY_ORDER_MAX (16u << 20) /* 10000 images with 20 layers each */

/* The helper's input: each layer once, even if several images use it. */
static void add_order(const struct img_task_run *run, json_t *layers, struct buf *order)
{
    for (size_t i = 0; i < run->n_held; i++) {
        const struct img_image *image = run->held[i]->image;

        buf_addf(order, "config %s\n", image->id + 7);
        for (size_t k = 0; k < image->layer_dirs.n; k++) {
            const char *name = img_layer_name(image, k);

            if (json_object_get(layers, name) != NULL)
                continue;
            buf_addf(order, "layer %s\n", name);
            if (json_object_set_new(layers, name, json_true()) != 0)
                order->failed = true;
        }
    }
}

/* ---- the answer ---- */

static bool image_verify_add_problem(json_t *item, const json_t *found, const char *part)
{
    const json_t *one = json_object_get(found, part);
    json_t *list =
        json_object_get(item, json_is_true(json_object_get(one, "unknown")) ? "unknown" : "problems");

    return one == NULL ||
           json_array_append_new(list, json_sprintf("%s: %s", part, json_str(one, "what"))) == 0;
}

static json_t *item_of(struct img_store *s, const struct img_entry *entry, const json_t *found)
{
    json_t *item = json_pack("{s:s, s:o, s:[], s:[]}", "id", entry->image->id, "names",
                             img_names_of(s, entry), "problems", "unknown");
    char part[80];
    bool room;

    snprintf(part, sizeof(part), "config %s", entry->image->id + 7);
    room = item != NULL && image_verify_add_problem(item, found, part);
    for (size_t k = 0; k < entry->image->layer_dirs.n && room; k++) {
        snprintf(part, sizeof(part), "layer %s", img_layer_name(entry->image, k));
        room = image_verify_add_problem(item, found, part);
    }
    if (!room) {
        json_decref(item);
        return NULL;
    }
    return item;
}

static enum err_code image_verify_answer(struct img_task_run *run, const json_t *said, struct err *e)
{
    json_auto_t *found = json_object();
    json_t *items = json_array(), *orphans = json_object_get(said, "orphans"), *one;
    size_t i;

    if (run->store->jobs_begun != run->jobs_before && json_is_array(orphans))
        json_array_clear(orphans); /* they may belong to images pulled meanwhile */
    json_array_foreach (json_object_get(said, "problems"), i, one) {
        const char *part = json_str(one, "part");

        if (part != NULL && json_str(one, "what") != NULL && json_object_set(found, part, one) != 0)
            return err_nomem(e);
    }
    run->answer =
        json_pack("{s:o, s:O, s:I}", "items", items, "orphans", orphans, "bytes", json_int(said, "bytes", 0));
    if (run->answer == NULL)
        return err_set(e, ERR_INVALID, "coracle-unpack: invalid answer");
    for (i = 0; i < run->n_held; i++)
        if (json_array_append_new(items, item_of(run->store, run->held[i], found)) != 0)
            return err_nomem(e);
    return ERR_OK;
}

static void on_verified(struct op *op, const struct err *result)
{
    struct img_task_run *run = op->owner;
    json_auto_t *said = NULL;
    struct err e = *result;

    if (e.code != ERR_OK)
        img_take_failure(run->proc.out.p, run->proc.out.n, &e);
    else if (json_parse(run->proc.out.p, run->proc.out.n, VERIFY_ANSWER_MAX, &said, "coracle-unpack", &e) ==
             ERR_OK)
        image_verify_answer(run, said, &e);
    img_task_end(run, &e);
}

/* ---- start ---- */

void img_verify_start(struct img_task *t, struct img_store *s, const char *reference, op_done_fn done,
                      void *owner)
{
    struct img_task_run *run =
        img_task_begin(t, s, "image verify", reference, VERIFY_DEADLINE_MS, done, owner);
    str_auto layers = str_printf("%s/layers", s->dir);
    str_auto parts = str_printf("%s/parts", s->dir);
    buf_auto order = BUF_INIT(VERIFY_ORDER_MAX);
    json_auto_t *known = json_object();
    /* During a pull, some layers have no image yet; and layers of an unread record are no orphans. */
    const bool orphans = reference == NULL && s->running == 0 && !img_unread_any(s);
    const char *const argv[] = { s->unpack_path, "--verify", orphans ? "all" : "some",
                                 "--layers",     layers,     "--parts",
                                 parts,          NULL };
    struct proc_spec spec;
    struct err e = { 0 };

    if (run == NULL)
        return;
    add_order(run, known, &order);
    if (known == NULL || layers == NULL || parts == NULL || order.failed) {
        err_nomem(&e);
        img_task_end(run, &e);
        return;
    }
    spec = img_unpack_spec(s, reference, argv, VERIFY_ANSWER_MAX, VERIFY_DEADLINE_MS);
    spec.stdin_data = order.p;
    spec.stdin_size = order.n;
    proc_start(&run->proc, &spec, s->loop, on_verified, run);
}
