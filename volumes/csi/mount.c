/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount - sets up one volume of a pod.
 *
 *     ASKS       NodeGetCapabilities
 *     WAITS      for its turn, unless the volume is inline: no other pod has it (turns.c)
 *     STAGES     the volume for all its pods (stage.c)
 *     PREPARES   the folder and vol_data.json, in a child
 *     PUBLISHES  NodePublishVolume
 *     MAPS       a block device, in a child
 *     GROUPS     the fsGroup, in a child, if the policy wants it
 *     EXPANDS    NodeExpandVolume, if its size has to grow (expand.c)
 *     UNDOES     folder and vol_data.json after a final error, in a child
 */
#include "volumes/csi/internal.h"
#include "volumes/volumes.h"

#include "base/log.h"
#include "base/scope.h"
#include "volumes/csi/device_place.h"

#include <string.h>

enum {
    MOUNT_ASKS,
    MOUNT_WAITS,
    MOUNT_STAGES,
    MOUNT_PREPARES,
    MOUNT_PUBLISHES,
    MOUNT_MAPS,
    MOUNT_GROUPS,
    MOUNT_EXPANDS,
    MOUNT_UNDOES
};

static void mount_end(struct csi_mount *m, const struct err *result)
{
    grpc_channel_close(m->channel);
    m->channel = NULL;
    csi_turn_give(m->csi, &m->turn);
    arena_done(&m->memory);
    op_finish(&m->op, result);
}

static void mount_abort(struct op *op)
{
    struct csi_mount *m = container_of(op, struct csi_mount, op);

    if (op_live(&m->call.op))
        op_cancel(&m->call.op);
    if (op_live(&m->child.op))
        op_cancel(&m->child.op);
    if (op_live(&m->stage.op))
        op_cancel(&m->stage.op);
    if (op_live(&m->expand.op))
        op_cancel(&m->expand.op);
    if (op->state == MOUNT_WAITS)
        mount_end(m, NULL);
}

/* A call to the driver is in progress. */
static bool is_asked(const struct csi_mount *m)
{
    return m->op.state == MOUNT_PUBLISHES || (m->op.state == MOUNT_STAGES && op_live(&m->stage.call.op)) ||
           (m->op.state == MOUNT_EXPANDS && op_live(&m->expand.op));
}

void csi_mount_stop(struct csi_mount *m)
{
    m->stops = true;
    if (!is_asked(m))
        op_cancel(&m->op);
}

bool csi_mount_stopped(const struct csi_mount *m)
{
    return m->stops || m->op.why.code == ERR_CANCELLED;
}

static void mount_end_stopped(struct csi_mount *m)
{
    struct err e = { 0 };

    err_set(&e, ERR_CANCELLED, "the pod of the volume is terminating");
    mount_end(m, &e);
}

static void mount_fail(struct csi_mount *m, const struct err *why, const char *what)
{
    struct err e = *why;

    err_wrap(&e, "%s", what);
    mount_end(m, &e);
}

/* ---- after the publish ---- */

static void on_grown(struct op *op, const struct err *result)
{
    mount_end(op->owner, result);
}

static void expand(struct csi_mount *m)
{
    if (m->op.why.code != ERR_OK || m->volume->expand_bytes == 0) {
        mount_end(m, NULL);
        return;
    }
    m->step = CSI_STEP_EXPAND;
    m->op.state = MOUNT_EXPANDS;
    csi_expand_start(&m->expand, m->csi, m->volume, m->caps, m->volume->expand_bytes, on_grown, m);
}

static enum err_code apply_group(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_mount *m = arg;

    (void)out;
    if (m->volume->group_if_wrong && vol_group_is(m->paths.target, m->volume->fs_group))
        return ERR_OK;
    return vol_group_set(m->paths.target, m->volume->fs_group, e);
}

static void on_grouped(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (result->code == ERR_OK)
        expand(m);
    else
        mount_fail(m, result, "applyFSGroup failed");
}

static enum err_code map(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_mount *m = arg;

    (void)out;
    return csi_block_map(&m->paths, e);
}

static void on_mapped(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (result->code == ERR_OK)
        expand(m);
    else
        mount_fail(m, result, "blkUtil.MapDevice failed");
}

static void follow_publish(struct csi_mount *m)
{
    const char *name = m->volume->spec_name;

    if (m->volume->block) {
        m->op.state = MOUNT_MAPS;
        csi_child(m->csi, &m->child, "map a CSI volume", name, map, m, on_mapped, m);
    } else if (csi_wants_group(m->volume, m->caps)) {
        m->op.state = MOUNT_GROUPS;
        csi_child(m->csi, &m->child, "give a CSI volume to its group", name, apply_group, m, on_grouped, m);
    } else {
        expand(m);
    }
}

/* ---- NodePublishVolume ---- */

static enum err_code undo(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_mount *m = arg;

    (void)out;
    return m->volume->block ? csi_block_remove(&m->paths, e) : csi_place_remove(m->paths.folder, e);
}

static void on_undone(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (result->code != ERR_OK) /* it stays, and is removed with the pod */
        log_debug("the folder of a CSI volume is kept", F_STR("folder", m->paths.folder), F_ERR(result));
    mount_end(m, &m->failed);
}

static void on_published(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (result->code == ERR_OK && m->stops) {
        mount_end_stopped(m);
    } else if (result->code == ERR_OK) {
        follow_publish(m);
    } else if (csi_is_uncertain(result->code)) {
        mount_end(m, result);
    } else {
        m->failed = *result;
        m->op.state = MOUNT_UNDOES;
        csi_child(m->csi, &m->child, "remove the folder of a CSI volume", m->volume->spec_name, undo, m,
                  on_undone, m);
    }
}

static void publish(struct csi_mount *m)
{
    const char *staging = csi_can(m->caps, CSI_CAN_STAGE) ? m->paths.staging : NULL;
    struct arena memory = { 0 };
    struct csi_request r;
    struct err e = { 0 };
    uint8_t *bytes = NULL;
    size_t n = 0;

    if (csi_publish_request(m->volume, m->caps, staging, m->paths.target, &memory, &r, &e) == ERR_OK)
        ERR_IGNORE(csi_publish_pack(&r, &bytes, &n, &e));
    arena_done(&memory);
    if (e.code != ERR_OK) {
        mount_end(m, &e);
        return;
    }
    m->op.state = MOUNT_PUBLISHES;
    csi_call(&m->call, m->channel, "/csi.v1.Node/NodePublishVolume", &(struct grpc_bytes){ bytes, n },
             m->volume->spec_name, on_published, m);
    csi_wipe(bytes, n);
}

/* ---- the folder ---- */

static enum err_code prepare(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_mount *m = arg;
    const struct csi_volume *v = m->volume;
    char attachment[CSI_HASHED_SIZE];
    const struct csi_vol_data d = { .attachment = attachment,
                                    .driver = v->driver,
                                    .node = m->csi->o.node_name,
                                    .spec_name = v->spec_name,
                                    .handle = v->handle,
                                    .ephemeral = v->ephemeral };

    (void)out;
    if (v->block)
        return csi_block_make(&m->paths, e);
    csi_attachment_name(v->handle, v->driver, m->csi->o.node_name, attachment);
    return csi_place_make(m->paths.folder, &d, e);
}

static void on_prepared(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (m->op.why.code != ERR_OK)
        mount_end(m, NULL);
    else if (result->code == ERR_OK)
        publish(m);
    else
        mount_fail(m, result, CSI_LOG "mounter.SetUpAt failed to save volume info data");
}

/* ---- the device that the pods of the volume share ---- */

static void begin_prepare(struct csi_mount *m)
{
    m->step = CSI_STEP_PUBLISH;
    m->op.state = MOUNT_PREPARES;
    csi_child(m->csi, &m->child, "make the folder of a CSI volume", m->volume->spec_name, prepare, m,
              on_prepared, m);
}

static void on_stage_done(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (m->op.why.code != ERR_OK)
        mount_end(m, NULL);
    else if (result->code == ERR_OK && m->stops)
        mount_end_stopped(m);
    else if (result->code == ERR_OK)
        begin_prepare(m);
    else
        mount_end(m, result);
}

static void on_turn(void *arg)
{
    struct csi_mount *m = arg;

    m->op.state = MOUNT_STAGES;
    csi_stage_start(&m->stage, m, on_stage_done, m);
}

/* ---- NodeGetCapabilities ---- */

static void on_caps(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK)
        ERR_IGNORE(csi_caps_unpack(&m->caps, m->call.response.p, m->call.response.n, &e));
    if (e.code != ERR_OK) {
        mount_fail(m, &e,
                   m->volume->ephemeral
                       ? CSI_LOG "mounter.SetUpAt failed to determine if the node service has "
                                 "VOLUME_MOUNT_GROUP capability"
                       : CSI_LOG "attacher.MountDevice failed to determine if the node service has "
                                 "VOLUME_MOUNT_GROUP capability");
        return;
    }
    if (m->op.why.code != ERR_OK) {
        mount_end(m, NULL);
        return;
    }
    if (m->volume->ephemeral) {
        begin_prepare(m);
        return;
    }
    m->op.state = MOUNT_WAITS;
    if (csi_turn_take(m->csi, &m->turn, m->paths.staging, on_turn, m))
        on_turn(m);
}

csi_caps csi_mount_caps(const struct csi_mount *m)
{
    return m->caps;
}

enum csi_step csi_mount_step(const struct csi_mount *m)
{
    return m->step;
}

/* In kubelet's words for a driver that has not registered. */
static const char *connecting(const struct csi_volume *v)
{
    if (v->ephemeral)
        return CSI_LOG "mounter.SetUpAt failed to get CSI client";
    return v->block ? CSI_LOG "blockMapper.SetUpDevice failed to get CSI client"
                    : CSI_LOG "attacher.MountDevice failed to create newCsiDriverClient";
}

void csi_mount_start(struct csi_mount *m, struct csi *c, const struct csi_volume *v, op_done_fn done,
                     void *owner)
{
    const struct grpc_bytes nothing = { 0 };
    const struct csi_id id = csi_id_of(v);
    struct err e = { 0 };

    *m =
        (struct csi_mount){ .csi = c, .volume = v, .step = v->ephemeral ? CSI_STEP_PUBLISH : CSI_STEP_STAGE };
    op_init(&m->op, c->o.loop, "set up CSI volume", 0, mount_abort, done, owner);
    op_set_subject(&m->op, v->spec_name);
    if (csi_paths_make(&m->paths, c->o.root_dir, &id, v->pod_uid, &m->memory, &e) != ERR_OK) {
        mount_end(m, &e);
        return;
    }
    if (csi_connect(c, v->driver, &m->channel, &e) != ERR_OK) {
        mount_fail(m, &e, connecting(v));
        return;
    }
    m->op.state = MOUNT_ASKS;
    csi_call(&m->call, m->channel, "/csi.v1.Node/NodeGetCapabilities", &nothing, v->driver, on_caps, m);
}
