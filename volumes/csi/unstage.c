/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unstage - undoes the parts that the pods of a volume share, if no pod has it any more.
 *
 *     WAITS      for its turn (turns.c)
 *     LOOKS      whether a pod has it on the disk, in a child
 *     ASKS       NodeGetCapabilities
 *     UNSTAGES   NodeUnstageVolume, if the driver stages
 *     CLEANS     its folder, in a child
 */
#include "volumes/csi/internal.h"

#include "base/scope.h"

#include "volumes/csi/device_place.h"

#include <string.h>

enum { UNSTAGE_WAITS, UNSTAGE_LOOKS, UNSTAGE_ASKS, UNSTAGE_UNSTAGES, UNSTAGE_CLEANS };

static void unstage_end(struct csi_unstage *u, const struct err *result)
{
    grpc_channel_close(u->channel);
    u->channel = NULL;
    csi_turn_give(u->csi, &u->turn);
    op_finish(&u->op, result);
    arena_done(&u->memory);
}

static void unstage_abort(struct op *op)
{
    struct csi_unstage *u = container_of(op, struct csi_unstage, op);

    if (op_live(&u->call.op))
        op_cancel(&u->call.op);
    else if (op_live(&u->child.op))
        op_cancel(&u->child.op);
    else if (op->state == UNSTAGE_WAITS)
        unstage_end(u, NULL);
}

static void unstage_fail(struct csi_unstage *u, const struct err *why, const char *what)
{
    struct err e = *why;

    err_wrap(&e, "UnmountDevice failed for volume \"%.80s\" of CSI driver %.80s%s", u->id.handle,
             u->id.driver, what);
    unstage_end(u, &e);
}

/* A pod may have come for it while a child or the driver worked. */
static bool is_wanted(const struct csi_unstage *u)
{
    const struct csi_options *o = &u->csi->o;

    return csi_turn_awaited(&u->turn) || (o->wanted != NULL && o->wanted(u->paths.staging, o->arg));
}

static enum err_code clean(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_unstage *u = arg;

    (void)out;
    return csi_device_remove(&u->paths, e);
}

static void on_cleaned(struct op *op, const struct err *result)
{
    struct csi_unstage *u = op->owner;

    if (result->code == ERR_OK)
        unstage_end(u, result);
    else
        unstage_fail(u, result,
                     result->code == ERR_PRECONDITION && u->asked
                         ? ": the driver answered OK to NodeUnstageVolume, and yet"
                         : "");
}

static void begin_clean(struct csi_unstage *u)
{
    u->op.state = UNSTAGE_CLEANS;
    csi_child(u->csi, &u->child, "remove the folder of a CSI volume", u->id.handle, clean, u, on_cleaned, u);
}

static void on_unstaged(struct op *op, const struct err *result)
{
    struct csi_unstage *u = op->owner;

    u->asked = true;
    if (result->code == ERR_OK)
        begin_clean(u);
    else
        unstage_fail(u, result, "");
}

static void on_unstage_caps(struct op *op, const struct err *result)
{
    struct csi_unstage *u = op->owner;
    struct err e = *result;
    uint8_t *bytes = NULL;
    csi_caps caps = 0;
    size_t n = 0;

    if (e.code == ERR_OK)
        ERR_IGNORE(csi_caps_unpack(&caps, u->call.response.p, u->call.response.n, &e));
    if (e.code == ERR_OK && u->op.why.code != ERR_OK)
        e = err_kept_get(&u->op.why);
    if (e.code == ERR_OK && !csi_can(caps, CSI_CAN_STAGE)) {
        begin_clean(u);
        return;
    }
    if (e.code == ERR_OK && is_wanted(u)) {
        unstage_end(u, NULL);
        return;
    }
    if (e.code != ERR_OK || csi_unstage_pack(u->id.handle, u->paths.staging, &bytes, &n, &e) != ERR_OK) {
        unstage_fail(u, &e, "");
        return;
    }
    csi_set_staged(u->csi, u->paths.staging, false);
    u->op.state = UNSTAGE_UNSTAGES;
    csi_call(&u->call, u->channel, "/csi.v1.Node/NodeUnstageVolume", &(struct grpc_bytes){ bytes, n },
             u->id.handle, on_unstaged, u);
    csi_wipe(bytes, n);
}

static void on_unstage_looked(struct op *op, const struct err *result)
{
    const struct grpc_bytes nothing = { 0 };
    struct csi_unstage *u = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK && u->op.why.code != ERR_OK)
        e = err_kept_get(&u->op.why);
    if (e.code == ERR_OK && (strcmp(u->child.out.p, "there") != 0 || is_wanted(u))) {
        unstage_end(u, NULL);
        return;
    }
    if (e.code != ERR_OK || csi_connect(u->csi, u->id.driver, &u->channel, &e) != ERR_OK) {
        unstage_fail(u, &e, "");
        return;
    }
    u->op.state = UNSTAGE_ASKS;
    csi_call(&u->call, u->channel, "/csi.v1.Node/NodeGetCapabilities", &nothing, u->id.driver,
             on_unstage_caps, u);
}

static enum err_code look(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_unstage *u = arg;

    return csi_device_state(u->csi->o.root_dir, &u->id, &u->paths, out, e);
}

static void on_turn(void *arg)
{
    struct csi_unstage *u = arg;

    u->op.state = UNSTAGE_LOOKS;
    csi_child(u->csi, &u->child, "look for pods of a CSI volume", u->id.handle, look, u, on_unstage_looked,
              u);
}

void csi_unstage_start(struct csi_unstage *u, struct csi *c, const struct csi_id *id, op_done_fn done,
                       void *owner)
{
    struct err e = { 0 };

    *u = (struct csi_unstage){ .csi = c, .id = *id };
    op_init(&u->op, c->o.loop, "unstage CSI volume", 0, unstage_abort, done, owner);
    op_set_subject(&u->op, id->handle);
    u->op.state = UNSTAGE_WAITS;
    if (csi_paths_make(&u->paths, c->o.root_dir, id, NULL, &u->memory, &e) != ERR_OK) {
        unstage_end(u, &e);
        return;
    }
    if (csi_turn_take(c, &u->turn, u->paths.staging, on_turn, u))
        on_turn(u);
}
