/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount - sets up one inline volume of a pod.
 *
 *     ASKS       NodeGetCapabilities
 *     PREPARES   the folder and vol_data.json, in a child
 *     PUBLISHES  NodePublishVolume
 *     GROUPS     the fsGroup, in a child, if the policy wants it
 *     UNDOES     folder and vol_data.json after a final error, in a child
 */
#include "volumes/csi/internal.h"

#include "base/log.h"
#include "base/scope.h"
#include "volumes/csi/group.h"
#include "volumes/csi/place.h"

#include <string.h>

enum { MOUNT_ASKS, MOUNT_PREPARES, MOUNT_PUBLISHES, MOUNT_GROUPS, MOUNT_UNDOES };

static void mount_end(struct csi_mount *m, const struct err *result)
{
    grpc_channel_close(m->channel);
    m->channel = NULL;
    op_finish(&m->op, result);
}

static void mount_abort(struct op *op)
{
    struct csi_mount *m = container_of(op, struct csi_mount, op);

    if (op_live(&m->call.op))
        op_cancel(&m->call.op);
    if (op_live(&m->child.op))
        op_cancel(&m->child.op);
}

static void mount_fail(struct csi_mount *m, const struct err *why, const char *what)
{
    struct err e = *why;

    err_wrap(&e, "%s", what);
    mount_end(m, &e);
}

/* ---- the fsGroup ---- */

static enum err_code apply_group(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_mount *m = arg;

    (void)out;
    return csi_group_apply(m->target, (gid_t)m->volume->fs_group, m->volume->group_if_wrong, e);
}

static void on_grouped(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (result->code == ERR_OK)
        mount_end(m, result);
    else
        mount_fail(m, result, "applyFSGroup failed");
}

/* ---- NodePublishVolume ---- */

static enum err_code undo(const void *arg, struct buf *out, struct err *e)
{
    const struct csi_mount *m = arg;

    (void)out;
    return csi_place_remove(m->folder, e);
}

static void on_undone(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (result->code != ERR_OK) /* it stays, and is removed with the pod */
        log_debug("the folder of a CSI volume is kept", F_STR("folder", m->folder), F_ERR(result));
    mount_end(m, &m->failed);
}

static void on_published(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (result->code == ERR_OK && csi_wants_group(m->volume, m->caps)) {
        m->op.state = MOUNT_GROUPS;
        csi_child(m->csi, &m->child, "give a CSI volume to its group", m->volume->spec_name, apply_group, m,
                  on_grouped, m);
    } else if (result->code == ERR_OK || csi_is_uncertain(result->code)) {
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
    struct arena memory = { 0 };
    struct csi_request r;
    struct err e = { 0 };
    uint8_t *bytes = NULL;
    size_t n = 0;

    if (csi_publish_request(m->volume, m->caps, NULL, m->target, &memory, &r, &e) == ERR_OK)
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
    csi_attachment_name(v->handle, v->driver, m->csi->o.node_name, attachment);
    return csi_place_make(m->folder, &d, e);
}

static void on_prepared(struct op *op, const struct err *result)
{
    struct csi_mount *m = op->owner;

    if (m->op.why.code != ERR_OK)
        mount_end(m, &m->op.why);
    else if (result->code == ERR_OK)
        publish(m);
    else
        mount_fail(m, result, CSI_LOG "mounter.SetUpAt failed to save volume info data");
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
                   CSI_LOG "mounter.SetUpAt failed to determine if the node service has "
                           "VOLUME_MOUNT_GROUP capability");
        return;
    }
    if (m->op.why.code != ERR_OK) {
        mount_end(m, &m->op.why);
        return;
    }
    m->op.state = MOUNT_PREPARES;
    csi_child(m->csi, &m->child, "make the folder of a CSI volume", m->volume->spec_name, prepare, m,
              on_prepared, m);
}

csi_caps csi_mount_caps(const struct csi_mount *m)
{
    return m->caps;
}

void csi_mount_start(struct csi_mount *m, struct csi *c, const struct csi_volume *v, op_done_fn done,
                     void *owner)
{
    const struct grpc_bytes nothing = { 0 };
    struct err e = { 0 };

    *m = (struct csi_mount){ .csi = c, .volume = v };
    op_init(&m->op, c->o.loop, "set up CSI volume", 0, mount_abort, done, owner);
    op_set_subject(&m->op, v->spec_name);
    if (csi_place_folder(c->o.root_dir, v->pod_uid, v->spec_name, m->folder, sizeof(m->folder), &e) !=
            ERR_OK ||
        csi_place_target(c->o.root_dir, v->pod_uid, v->spec_name, m->target, sizeof(m->target), &e) !=
            ERR_OK) {
        mount_end(m, &e);
        return;
    }
    if (csi_connect(c, v->driver, &m->channel, &e) != ERR_OK) {
        mount_fail(m, &e, CSI_LOG "mounter.SetUpAt failed to get CSI client");
        return;
    }
    m->op.state = MOUNT_ASKS;
    csi_call(&m->call, m->channel, "/csi.v1.Node/NodeGetCapabilities", &nothing, v->driver, on_caps, m);
}
