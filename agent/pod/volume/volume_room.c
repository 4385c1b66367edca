/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/csi_volumes.h"
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/live_sub_path.h"
#include "agent/pod/volume/storage_volumes.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static void volume_init(struct pod *p)
{
    volumes_of(p)->vols_since_ns = clock_wall_ns();
}

static void volume_step(struct pod *p)
{
    volumes_step(p);
    live_sub_path_step(p);
}

static bool volume_busy(const struct pod *p)
{
    const struct pod_volumes *vols = volumes_of(p);

    return op_live(&vols->vols_call.op) || op_live(&vols->live_call.op) || op_live(&vols->write.op) ||
           csi_volumes_busy(p) || storage_volumes_busy(p);
}

static void volume_cancel(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    if (op_live(&vols->vols_call.op))
        op_cancel(&vols->vols_call.op);
    if (op_live(&vols->live_call.op))
        op_cancel(&vols->live_call.op);
    if (op_live(&vols->write.op))
        op_cancel(&vols->write.op);
    csi_volumes_cancel(p);
    storage_volumes_cancel(p);
}

static void volume_end(struct pod *p)
{
    volumes_of(p)->vols_retry_at = CLOCK_BOOT_NONE;
    volumes_of(p)->write_waits = false;
    csi_volumes_end(p);
    storage_volumes_end(p);
}

static void volume_free(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    free(take_ptr(&vols->overlaps));
    free(take_ptr(&vols->vols_error));
    free(take_ptr(&vols->vols_event));
    free(take_ptr(&vols->shm_path));
    csi_volumes_free(p);
    storage_volumes_free(p);
}

static void volume_reset(struct pod *p)
{
    volumes_set_state(p, VOLS_NONE); /* this logs the change */
    volume_free(p);
    memset(volumes_of(p), 0, sizeof(struct pod_volumes));
    for (size_t i = 0; i < p->n_ctrs; i++)
        memset(live_of(p->ctrs[i]), 0, sizeof(struct live_ctr));
    volume_init(p);
}

static bool volume_node_busy(const struct node *n)
{
    return (n->csi != NULL && csi_busy(n->csi)) || storage_volumes_node_busy(n);
}

static void volume_node_cancel(struct node *n)
{
    if (n->csi != NULL)
        csi_cancel(n->csi);
}

static void volume_node_free(struct node *n)
{
    csi_close(n->csi);
    n->csi = NULL;
    storage_volumes_node_free(n);
}

static void volume_node_open(struct node *n)
{
    csi_volumes_open(n);
    storage_volumes_open(n);
}

const struct room volume_room = {
    .id = ROOM_VOLUME,
    .name = "volume",
    .node = { .size = sizeof(struct volume_node),
              .open = volume_node_open,
              .busy = volume_node_busy,
              .cancel = volume_node_cancel,
              .free = volume_node_free,
              .mounts_changed = volumes_mounts_changed },
    .pod = { .size = sizeof(struct pod_volumes),
             .ctr_size = sizeof(struct live_ctr),
             .init = volume_init,
             .step = volume_step,
             .busy = volume_busy,
             .cancel = volume_cancel,
             .end = volume_end,
             .reset = volume_reset,
             .free = volume_free },
};
