/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remove - undoes the volumes of a pod, one after the other.
 *
 *     LOOKS        removes the agent's own mounts on them, and reads the files vol_data.json, in a child
 *     WAITS        for the turn of volumes[at] (turns.c)
 *     UNMAPS       a block device, in a child
 *     UNPUBLISHES  NodeUnpublishVolume
 *     CLEANS       its folder, in a child; its staging is released; then the next
 */
#include "volumes/csi/internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"
#include "volumes/csi/device_place.h"

#include <fcntl.h>
#include <string.h>

#define VOLUMES_MAX 4096 /* of one pod: a manifest has at most some hundred */

enum { REMOVE_LOOKS, REMOVE_WAITS, REMOVE_UNMAPS, REMOVE_UNPUBLISHES, REMOVE_CLEANS };

struct csi_removed {
    const char *name;
    const char *driver, *handle; /* NULL: unknown */
    const char *error;           /* of its vol_data.json; NULL: none */
    bool block, ephemeral;
    struct csi_paths paths;
};

static void next(struct csi_remove *r);

static void remove_end(struct csi_remove *r, const struct err *result)
{
    grpc_channel_close(r->channel);
    r->channel = NULL;
    csi_turn_give(r->csi, &r->turn);
    arena_done(&r->memory);
    op_finish(&r->op, result);
}

static void remove_abort(struct op *op)
{
    struct csi_remove *r = container_of(op, struct csi_remove, op);

    if (op_live(&r->call.op))
        op_cancel(&r->call.op);
    if (op_live(&r->child.op))
        op_cancel(&r->child.op);
    if (op->state == REMOVE_WAITS)
        remove_end(r, r->first.code != ERR_OK ? &r->first : NULL);
}

/* ---- one volume ---- */

static void volume_failed(struct csi_remove *r, const struct err *why)
{
    const struct csi_removed *v = &r->volumes[r->at];
    struct err e = *why;

    csi_turn_give(r->csi, &r->turn);
    if (r->first.code == ERR_OK) {
        err_wrap(&e, "%s failed for volume \"%.80s\" of CSI driver %.80s",
                 v->block ? "UnmapVolume.UnmapPodDevice" : "UnmountVolume.TearDown", v->name,
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
    return r->volumes[r->at].block ? csi_block_remove(&r->volumes[r->at].paths, e)
                                   : csi_place_remove(r->volumes[r->at].paths.folder, e);
}

static void release(struct csi_remove *r, const struct csi_removed *v)
{
    if (v->handle != NULL)
        csi_release(r->csi, &(struct csi_id){ .driver = v->driver,
                                              .handle = v->handle,
                                              .spec_name = v->name,
                                              .block = v->block,
                                              .ephemeral = v->ephemeral });
}

static void on_cleaned(struct op *op, const struct err *result)
{
    struct csi_remove *r = op->owner;
    const struct csi_removed *v = &r->volumes[r->at];
    struct err e = *result;

    if (e.code == ERR_OK) {
        csi_turn_give(r->csi, &r->turn);
        release(r, v);
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
    if (csi_unpublish_pack(v->handle, v->paths.target, &bytes, &n, &e) != ERR_OK) {
        volume_failed(r, &e);
        return;
    }
    r->op.state = REMOVE_UNPUBLISHES;
    csi_call(&r->call, r->channel, "/csi.v1.Node/NodeUnpublishVolume", &(struct grpc_bytes){ bytes, n },
             v->name, on_unpublished, r);
    csi_wipe(bytes, n);
}

static enum err_code unmap(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_remove *r = arg;

    (void)out;
    return csi_block_unmap(&r->volumes[r->at].paths, e);
}

static void undo(struct csi_remove *r)
{
    if (r->volumes[r->at].handle != NULL)
        unpublish(r);
    else
        begin_clean(r); /* a folder without a mount, which an interrupted set-up or removal left */
}

static void on_unmapped(struct op *op, const struct err *result)
{
    struct csi_remove *r = op->owner;
    struct err why = err_kept_get(&r->op.why);

    if (result->code != ERR_OK)
        volume_failed(r, result);
    else if (why.code != ERR_OK)
        volume_failed(r, &why);
    else
        undo(r);
}

static void on_turn(void *arg)
{
    struct csi_remove *r = arg;

    if (!r->volumes[r->at].block) {
        undo(r);
        return;
    }
    r->op.state = REMOVE_UNMAPS;
    csi_child(r->csi, &r->child, "unmap a CSI volume", r->uid, unmap, r, on_unmapped, r);
}

static void next(struct csi_remove *r)
{
    const struct csi_removed *v = &r->volumes[r->at];

    if (r->at == r->n_volumes || r->op.why.code != ERR_OK) {
        remove_end(r, r->first.code != ERR_OK ? &r->first : NULL);
        return;
    }
    r->op.state = REMOVE_WAITS;
    if (v->paths.staging == NULL || csi_turn_take(r->csi, &r->turn, v->paths.staging, on_turn, r))
        on_turn(r);
}

/* ---- the scan ---- */

static enum err_code remove_look(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_remove *r = arg;

    if (r->csi->o.let_go != NULL && r->csi->o.let_go(r->uid, r->csi->o.arg, e) != ERR_OK)
        return e->code;
    return csi_place_list(r->csi->o.root_dir, r->uid, out, e);
}

static void use_known(struct csi_remove *r, struct csi_removed *v)
{
    for (size_t i = 0; i < r->n_known && v->handle == NULL; i++)
        if (strcmp(r->known[i].name, v->name) == 0) {
            v->driver = r->known[i].driver;
            v->handle = r->known[i].handle;
            v->ephemeral = r->known[i].ephemeral;
        }
}

static enum err_code take_one(struct csi_remove *r, const json_t *o, struct csi_removed *v, struct err *e)
{
    const char *name = json_str(o, "name");
    struct csi_id id;

    v->name = arena_strdup(&r->memory, name != NULL ? name : "");
    v->driver = arena_strdup(&r->memory, json_str(o, "driver"));
    v->handle = arena_strdup(&r->memory, json_str(o, "handle"));
    v->error = arena_strdup(&r->memory, json_str(o, "error"));
    v->block = json_flag(o, "block");
    v->ephemeral = json_flag(o, "ephemeral");
    if (v->name == NULL)
        return err_nomem(e);
    use_known(r, v);
    id = (struct csi_id){ .driver = v->driver,
                          .handle = v->handle,
                          .spec_name = v->name,
                          .block = v->block,
                          .ephemeral = v->ephemeral };
    return csi_paths_make(&v->paths, r->csi->o.root_dir, &id, r->uid, &r->memory, e);
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

static struct presence no_memory(struct err *e)
{
    err_nomem(e);
    return presence_unknown(e);
}

struct presence csi_has_volumes(const struct csi *c, const char *pod_uid, struct err *e)
{
    static const char *const kinds[] = { CSI_VOLUMES, CSI_DEVICES };
    struct presence found = presence_absent();

    if (csi_path_check("pod uid", pod_uid, e) != ERR_OK)
        return presence_unknown(e);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        str_auto path = str_printf("%s/pods/%s/%s", c->o.root_dir, pod_uid, kinds[i]);

        if (path == NULL)
            return no_memory(e);
        found = fs_look_at(AT_FDCWD, path, NULL, e);
        if (!presence_is_absent(found))
            break;
    }
    return found;
}
