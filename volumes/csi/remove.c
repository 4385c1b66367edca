/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remove - undoes the volumes of a pod, one after the other.
 *
 *     LOOKS        gives up mounts of our own on them, and reads the files vol_data.json, in a child
 *     UNPUBLISHES  NodeUnpublishVolume of volumes[at]
 *     CLEANS       its folder, in a child, then the next
 */
#include "volumes/csi/internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "volumes/csi/place.h"

#include <fcntl.h>
#include <string.h>

#define VOLUMES_MAX 4096 /* of one pod: a manifest has at most some hundred */

enum { REMOVE_LOOKS, REMOVE_UNPUBLISHES, REMOVE_CLEANS };

struct csi_removed {
    const char *name;
    const char *driver, *handle; /* NULL: unknown */
    const char *error;           /* of its vol_data.json; NULL: none */
    char folder[CSI_PATH_SIZE], target[CSI_PATH_SIZE];
};

static void next(struct csi_remove *r);

static void remove_abort(struct op *op)
{
    struct csi_remove *r = container_of(op, struct csi_remove, op);

    if (op_live(&r->call.op))
        op_cancel(&r->call.op);
    if (op_live(&r->child.op))
        op_cancel(&r->child.op);
}

static void remove_end(struct csi_remove *r, const struct err *result)
{
    grpc_channel_close(r->channel);
    r->channel = NULL;
    arena_done(&r->memory);
    op_finish(&r->op, result);
}

/* ---- one volume ---- */

static void volume_failed(struct csi_remove *r, const struct err *why)
{
    const struct csi_removed *v = &r->volumes[r->at];
    struct err e = *why;

    if (r->first.code == ERR_OK) {
        err_wrap(&e, "UnmountVolume.TearDown failed for volume \"%.80s\" of CSI driver %.80s", v->name,
                 v->driver != NULL ? v->driver : "(unknown)");
        r->first = e;
    }
    r->at++;
    next(r);
}

static enum err_code clean(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_remove *r = arg;

    (void)out;
    return csi_place_remove(r->volumes[r->at].folder, e);
}

static void on_cleaned(struct op *op, const struct err *result)
{
    struct csi_remove *r = op->owner;
    const struct csi_removed *v = &r->volumes[r->at];
    struct err e = *result;

    if (e.code == ERR_OK) {
        r->at++;
        next(r);
        return;
    }
    if (v->handle == NULL)
        err_wrap(&e, "%s, so the driver cannot be asked to unpublish it", v->error);
    else if (e.code == ERR_PRECONDITION)
        err_wrap(&e, "the driver answered OK to NodeUnpublishVolume, and yet");
    volume_failed(r, &e);
}

static void begin_clean(struct csi_remove *r)
{
    r->op.state = REMOVE_CLEANS;
    csi_child(r->csi, &r->child, "remove the folder of a CSI volume", r->uid, clean, r, on_cleaned, r);
}

static void on_unpublished(struct op *op, const struct err *result)
{
    struct csi_remove *r = op->owner;

    grpc_channel_close(r->channel);
    r->channel = NULL;
    if (result->code == ERR_OK)
        begin_clean(r);
    else
        volume_failed(r, result);
}

static void unpublish(struct csi_remove *r)
{
    const struct csi_removed *v = &r->volumes[r->at];
    struct err e = { 0 };
    uint8_t *bytes = NULL;
    size_t n = 0;

    if (csi_connect(r->csi, v->driver, &r->channel, &e) != ERR_OK) {
        err_wrap(&e, CSI_LOG "Unmounter.TearDownAt failed to get CSI client");
        volume_failed(r, &e);
        return;
    }
    if (csi_unpublish_pack(v->handle, v->target, &bytes, &n, &e) != ERR_OK) {
        volume_failed(r, &e);
        return;
    }
    r->op.state = REMOVE_UNPUBLISHES;
    csi_call(&r->call, r->channel, "/csi.v1.Node/NodeUnpublishVolume", &(struct grpc_bytes){ bytes, n },
             v->name, on_unpublished, r);
    csi_wipe(bytes, n);
}

static void next(struct csi_remove *r)
{
    if (r->at == r->n_volumes || r->op.why.code != ERR_OK)
        remove_end(r, r->first.code != ERR_OK ? &r->first : &r->op.why);
    else if (r->volumes[r->at].handle != NULL)
        unpublish(r);
    else
        begin_clean(r); /* a folder without a mount, which an interrupted set-up or removal left */
}

/* ---- the look ---- */

static enum err_code remove_look(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_remove *r = arg;
    char all[CSI_PATH_SIZE];

    if (csi_place_all(r->csi->o.root_dir, r->uid, all, sizeof(all), e) != ERR_OK ||
        (r->csi->o.let_go != NULL && r->csi->o.let_go(r->uid, r->csi->o.arg, e) != ERR_OK))
        return e->code;
    return csi_place_list(all, out, e);
}

static void use_known(struct csi_remove *r, struct csi_removed *v)
{
    for (size_t i = 0; i < r->n_known && v->handle == NULL; i++)
        if (strcmp(r->known[i].name, v->name) == 0) {
            v->driver = r->known[i].driver;
            v->handle = r->known[i].handle;
        }
}

static enum err_code take_one(struct csi_remove *r, const json_t *o, struct csi_removed *v, struct err *e)
{
    const char *name = json_str(o, "name");

    v->name = arena_strdup(&r->memory, name != NULL ? name : "");
    v->driver = arena_strdup(&r->memory, json_str(o, "driver"));
    v->handle = arena_strdup(&r->memory, json_str(o, "handle"));
    v->error = arena_strdup(&r->memory, json_str(o, "error"));
    if (v->name == NULL)
        return err_nomem(e);
    use_known(r, v);
    if (csi_place_folder(r->csi->o.root_dir, r->uid, v->name, v->folder, sizeof(v->folder), e) != ERR_OK)
        return e->code;
    return csi_place_target(r->csi->o.root_dir, r->uid, v->name, v->target, sizeof(v->target), e);
}

static enum err_code take_list(struct csi_remove *r, struct err *e)
{
    json_t *list = NULL, *o;
    size_t i;

    if (json_parse(r->child.out.p, r->child.out.n, SIZE_MAX, &list, "CSI volumes", e) != ERR_OK)
        return e->code;
    if (json_array_size(list) > VOLUMES_MAX)
        err_set(e, ERR_EXHAUSTED, "more than %d CSI volumes of one pod", VOLUMES_MAX);
    else
        r->volumes = arena_alloc(&r->memory, (json_array_size(list) + 1) * sizeof(r->volumes[0]));
    if (e->code == ERR_OK && r->volumes == NULL)
        err_nomem(e);
    json_array_foreach (list, i, o)
        if (e->code == ERR_OK && take_one(r, o, &r->volumes[i], e) == ERR_OK)
            r->n_volumes = i + 1;
    json_decref(list);
    return e->code;
}

static void on_looked(struct op *op, const struct err *result)
{
    struct csi_remove *r = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK && take_list(r, &e) == ERR_OK)
        next(r);
    else
        remove_end(r, &e);
}

void csi_remove_start(struct csi_remove *r, struct csi *c, const char *pod_uid, const struct csi_known *known,
                      size_t n_known, op_done_fn done, void *owner)
{
    struct err e = { 0 };

    *r = (struct csi_remove){ .csi = c, .known = known, .n_known = n_known };
    op_init(&r->op, c->o.loop, "remove CSI volumes", 0, remove_abort, done, owner);
    op_set_subject(&r->op, pod_uid);
    if (strlen(pod_uid) >= sizeof(r->uid)) {
        err_set(&e, ERR_INVALID, "the uid of the pod is longer than %zu bytes", sizeof(r->uid) - 1);
        remove_end(r, &e);
        return;
    }
    strcpy(r->uid, pod_uid);
    r->op.state = REMOVE_LOOKS;
    csi_child(c, &r->child, "look for CSI volumes", r->uid, remove_look, r, on_looked, r);
}

struct presence csi_look(const struct csi *c, const char *pod_uid, struct err *e)
{
    char all[CSI_PATH_SIZE];

    if (csi_place_all(c->o.root_dir, pod_uid, all, sizeof(all), e) != ERR_OK)
        return presence_unknown(e);
    return fs_look_at(AT_FDCWD, all, NULL, e);
}
