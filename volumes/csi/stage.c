/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage - the parts that the pods of a volume share: its vol_data.json, and NodeStageVolume.
 *
 *     PREPARES   folder and vol_data.json, in a child
 *     STAGES     NodeStageVolume, unless the driver does not stage, or it was done before
 *     UNDOES     folder and vol_data.json after a final error, in a child
 */
#include "volumes/csi/internal.h"

#include "base/scope.h"

#include "base/log.h"
#include "volumes/csi/device_place.h"

enum { STAGE_PREPARES, STAGE_STAGES, STAGE_UNDOES };

static void stage_abort(struct op *op)
{
    struct csi_stage *s = container_of(op, struct csi_stage, op);

    if (op_live(&s->call.op))
        op_cancel(&s->call.op);
    if (op_live(&s->child.op))
        op_cancel(&s->child.op);
}

static enum err_code undo(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_stage *s = arg;

    (void)out;
    return csi_device_remove(s->paths, e);
}

static void on_undone(struct op *op, const struct err *result)
{
    struct csi_stage *s = op->owner;

    if (result->code != ERR_OK) /* mounted by an earlier call, or in use: it is unstaged later */
        log_debug("the folder of a staged CSI volume is kept", F_STR("folder", s->paths->device),
                  F_ERR(result));
    op_finish(&s->op, &s->failed);
}

static void on_staged(struct op *op, const struct err *result)
{
    struct csi_stage *s = op->owner;

    if (result->code == ERR_OK)
        csi_set_staged(s->csi, s->paths->staging, true);
    if (result->code == ERR_OK || csi_is_uncertain(result->code)) {
        op_finish(&s->op, result);
        return;
    }
    s->failed = *result;
    s->op.state = STAGE_UNDOES;
    csi_child(s->csi, &s->child, "remove the folder of a CSI volume", s->volume->spec_name, undo, s,
              on_undone, s);
}

static void stage(struct csi_stage *s)
{
    struct arena memory = { 0 };
    struct csi_request r;
    struct err e = { 0 };
    uint8_t *bytes = NULL;
    size_t n = 0;

    if (csi_stage_request(s->volume, s->caps, s->paths->staging, &memory, &r, &e) == ERR_OK)
        ERR_IGNORE(csi_stage_pack(&r, &bytes, &n, &e));
    arena_done(&memory);
    if (e.code != ERR_OK) {
        op_finish(&s->op, &e);
        return;
    }
    s->op.state = STAGE_STAGES;
    csi_call(&s->call, s->channel, "/csi.v1.Node/NodeStageVolume", &(struct grpc_bytes){ bytes, n },
             s->volume->spec_name, on_staged, s);
    csi_wipe(bytes, n);
}

static bool stages(const struct csi_stage *s)
{
    return csi_can(s->caps, CSI_CAN_STAGE) && !csi_is_staged(s->csi, s->paths->staging);
}

static enum err_code prepare(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_stage *s = arg;
    const struct csi_volume *v = s->volume;
    char attachment[CSI_HASHED_SIZE];
    struct csi_vol_data d = { .driver = v->driver, .handle = v->handle, .shared = true };

    (void)out;
    if (v->block) {
        csi_attachment_name(v->handle, v->driver, s->csi->o.node_name, attachment);
        d.attachment = attachment;
        d.node = s->csi->o.node_name;
        d.spec_name = v->spec_name;
    }
    return csi_device_make(s->paths, &d, csi_can(s->caps, CSI_CAN_STAGE), e);
}

static void on_prepared(struct op *op, const struct err *result)
{
    struct csi_stage *s = op->owner;

    if (s->op.why.code != ERR_OK)
        op_finish(&s->op, NULL);
    else if (result->code == ERR_OK && stages(s))
        stage(s);
    else
        op_finish(&s->op, result);
}

void csi_stage_start(struct csi_stage *s, const struct csi_mount *m, op_done_fn done, void *owner)
{
    *s = (struct csi_stage){
        .csi = m->csi, .volume = m->volume, .paths = &m->paths, .caps = m->caps, .channel = m->channel
    };
    op_init(&s->op, s->csi->o.loop, "stage CSI volume", 0, stage_abort, done, owner);
    op_set_subject(&s->op, s->volume->spec_name);
    if (!stages(s) && !s->volume->block) {
        op_finish(&s->op, NULL);
        return;
    }
    s->op.state = STAGE_PREPARES;
    csi_child(s->csi, &s->child, "make the folder of a CSI volume", s->volume->spec_name, prepare, s,
              on_prepared, s);
}
