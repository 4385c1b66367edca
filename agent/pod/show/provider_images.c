/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the status socket about images, and their use on this node. */
#include "agent/pod/image/images.h"
#include "agent/pod/show/internal.h"
#include "agent/pod/show/provider.h"
#include "base/codec/json.h"
#include "base/log.h"

struct import {
    struct node *node;
    struct img_bring bring;
    struct status_reply *reply;
    TAILQ_ENTRY(import) link;
};

static void on_imported(struct op *op, const struct err *result)
{
    struct import *i = op->owner;

    if (result->code == ERR_OK) {
        json_t *o = json_object();
        json_object_set(o, "names", i->bring.names);
        json_put_str(o, "id", i->bring.image != NULL ? i->bring.image->id : NULL);
        if (i->bring.image != NULL)
            json_object_set_new(o, "sizeBytes", json_integer((json_int_t)i->bring.image->size_bytes));
        status_reply_json(i->reply, 200, o);
    } else {
        status_reply_err(i->reply, result);
    }
    TAILQ_REMOVE(&show_node(i->node)->imports, i, link);
    free(i);
}

void provider_image_add(void *arg, const char *source, const char *name, struct status_reply *r)
{
    struct node *n = arg;
    struct import *i = n->closing ? NULL : calloc(1, sizeof(*i));
    struct err e = { 0 };

    if (i == NULL) {
        err_set(&e, ERR_UNAVAILABLE, n->closing ? "the agent is shutting down" : "out of memory");
        status_reply_err(r, &e);
        return;
    }
    i->node = n;
    i->reply = r;
    TAILQ_INSERT_TAIL(&show_node(n)->imports, i, link);
    img_bring_start(&i->bring, n->o.images, source, name, on_imported, i);
}

json_t *provider_image_progress(void *arg, const struct status_reply *r)
{
    struct node *n = arg;
    struct img_progress p;
    struct import *i;

    TAILQ_FOREACH (i, &show_node(n)->imports, link)
        if (i->reply == r)
            break;
    if (i == NULL)
        return NULL;
    img_bring_progress(&i->bring, &p);
    return json_pack("{s:s, s:I, s:I, s:I}", "step", p.step, "bytes",
                     (json_int_t)(p.bytes < INT64_MAX ? p.bytes : INT64_MAX), "layers", (json_int_t)p.layers,
                     "ofLayers", (json_int_t)p.of_layers);
}

/* ---- removal ---- */

static bool provider_images_in_use(const char *id, void *arg)
{
    return image_is_used(arg, id, NULL);
}

enum err_code provider_image_remove(void *arg, const char *name, struct err *e)
{
    struct node *n = arg;
    struct img_image *image = img_lookup(n->o.images, name);
    buf_auto pods = BUF_INIT(64 * 1024);
    bool used = image != NULL && image_is_used(n, image->id, &pods);

    img_unref(image);
    if (img_remove(n->o.images, name, provider_images_in_use, n, e) == ERR_PRECONDITION && used)
        err_set(e, ERR_PRECONDITION, "image \"%.200s\" is in use by %s", name, pods.p);
    return e->code;
}

struct pruning {
    struct node *node;
    bool all;
    uint64_t bytes;
    json_t *items;
};

static void prune_one(const struct img_seen *seen, void *arg)
{
    struct pruning *p = arg;
    const struct img_image *image = seen->image;
    uint64_t own;
    json_t *one;
    struct err e = { 0 };

    if (image->pinned || seen->held || (seen->n_names > 0 && !p->all) ||
        image_is_used(p->node, image->id, NULL))
        return;
    own = img_own_bytes(p->node->o.images, image->id);
    one = json_pack("{s:s, s:I}", "id", image->id, "bytes", (json_int_t)own);
    if (img_remove_id(p->node->o.images, image->id, &e) != ERR_OK) {
        log_warn("cannot prune image", F_ERR(&e));
        json_decref(one);
        return;
    }
    p->bytes += own;
    json_array_append_new(p->items, one);
}

static void provider_images_prune(struct node *n, bool all, struct status_reply *r)
{
    struct pruning p = { .node = n, .all = all, .items = json_array() };

    if (p.items != NULL)
        img_each(n->o.images, prune_one, &p);
    status_reply_json(r, 200, json_pack("{s:o, s:I}", "items", p.items, "bytes", (json_int_t)p.bytes));
}

/* ---- slow requests ---- */

struct image_task {
    struct node *node;
    struct img_task task;
    struct status_reply *reply;
    TAILQ_ENTRY(image_task) link;
};

static void on_task_done(struct op *op, const struct err *result)
{
    struct image_task *t = op->owner;

    if (result->code != ERR_OK)
        status_reply_err(t->reply, result);
    else
        status_reply_json(t->reply, 200,
                          t->task.answer != NULL ? json_incref(t->task.answer) : json_object());
    TAILQ_REMOVE(&show_node(t->node)->image_tasks, t, link);
    free(t);
}

void provider_image_task(void *arg, const struct status_image_task *task, struct status_reply *r)
{
    struct node *n = arg;
    struct image_task *t = NULL;
    struct err e = { 0 };

    if (n->closing)
        err_set(&e, ERR_UNAVAILABLE, "the agent is shutting down");
    else if (task->verb == IMAGE_PRUNE) {
        provider_images_prune(n, task->all, r);
        return;
    } else if ((t = calloc(1, sizeof(*t))) == NULL)
        err_nomem(&e);
    if (t == NULL) {
        status_reply_err(r, &e);
        return;
    }
    t->node = n;
    t->reply = r;
    TAILQ_INSERT_TAIL(&show_node(n)->image_tasks, t, link);
    if (task->verb == IMAGE_VERIFY)
        img_verify_start(&t->task, n->o.images, task->name, on_task_done, t);
    else if (task->verb == IMAGE_EXPORT)
        img_export_start(&t->task, n->o.images, task->name, task->file, on_task_done, t);
    else if (task->verb == IMAGE_TAG)
        img_tag_start(&t->task, n->o.images, task->name, task->as, on_task_done, t);
    else if (task->verb == IMAGE_HISTORY)
        img_history_start(&t->task, n->o.images, task->name, on_task_done, t);
    else
        img_pin_start(&t->task, n->o.images, task->name, task->verb == IMAGE_PIN, on_task_done, t);
}

bool provider_images_busy(const struct node *n)
{
    const struct show_node *part = show_node(n);

    return !TAILQ_EMPTY(&part->imports) || !TAILQ_EMPTY(&part->image_tasks);
}

void provider_images_cancel(struct node *n)
{
    struct show_node *part = show_node(n);
    struct import *i;
    struct image_task *t;

    TAILQ_FOREACH (i, &part->imports, link)
        op_cancel(&i->bring.op);
    TAILQ_FOREACH (t, &part->image_tasks, link)
        op_cancel(&t->task.op);
}
