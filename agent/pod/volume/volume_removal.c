/* SPDX-License-Identifier: Apache-2.0 */
/* The removal of a pod's volumes, in a child: mounts may hang, or be covered by another program's mount. */
#include "agent/pod/core/events.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/project/project.h"
#include "agent/pod/volume/csi_volumes.h"
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/storage_volumes.h"
#include "agent/pod/volume/volumes.h"
#include "base/log.h"

#include <string.h>

#define TEARDOWN_DEADLINE_MS 120000
#define REMOVE_RETRY_MS 5000

static enum err_code remove_all(const void *arg, struct buf *out, struct err *e)
{
    const struct pod *p = arg;

    (void)out;
    return vol_pod_teardown(p->node->o.volumes, p->uid, e);
}

/* A foreign mount blocks the removal: retry when the mounts change. */
static void wait_for_mounts(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);
    struct err e = { 0 };
    bool new = false;

    if (mount_watch_begin(p->node, &new, &e) != ERR_OK) {
        log_warn("cannot watch mounts; will retry periodically", F_STR("pod", p->key), F_ERR(&e));
        vols->vols_retry_at = clock_boot_in_ms(REMOVE_RETRY_MS);
    } else if (new) {
        vols->vols_retry_at = CLOCK_BOOT_NONE; /* the mount may have disappeared before the watch began */
    } else if (mount_watch_rounds(p->node) != vols->vols_mount_round) {
        vols->vols_retry_at = clock_boot_in_ms(1000); /* or during the removal */
    } else {
        vols->vols_held = true;
    }
}

static void not_removed(struct pod *p, const struct err *why)
{
    struct pod_volumes *vols = volumes_of(p);

    if (str_keep(&vols->vols_error, why->text)) {
        log_warn("cannot remove a pod's volumes; will retry", F_STR("pod", p->key), F_ERR(why));
        pod_event(p, NULL, true, "FailedUnMount", "%s", why->text);
    }
    if (why->code == ERR_PRECONDITION)
        wait_for_mounts(p);
    else
        vols->vols_retry_at = clock_boot_in_ms(REMOVE_RETRY_MS);
}

static void on_removed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;

    if (result->code == ERR_OK) {
        str_keep(&volumes_of(p)->vols_error, "");
        volumes_set_state(p, VOLS_REMOVED);
        project_gone(p->node, p->uid);
    } else if (result->code == ERR_PRECONDITION && p->node->draining) {
        /* The end of all pods does not wait for foreign mounts. */
        log_warn("keeping a pod's volumes; the next start will remove them", F_STR("pod", p->key),
                 F_ERR(result));
        volumes_set_state(p, VOLS_REMOVED);
    } else {
        volumes_set_state(p, VOLS_READY);
        if (result->code != ERR_CANCELLED)
            not_removed(p, result);
    }
    pod_wake(p, "volumes were removed");
}

bool volumes_teardown_step(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);
    struct proc_call_spec call = {
        .name = "remove volumes",
        .subject = p->key,
        .fn = remove_all,
        .arg = p,
        .deadline_ms = TEARDOWN_DEADLINE_MS,
        CG_OPS(p->node->o.cgroups),
        .moves_late = true,
    };

    bool kept = false;

    if (project_working(p)) /* folders are being made */
        return false;
    if (payloads_working(p)) { /* it goes on to its end */
        op_cancel(&vols->write.op);
        return false;
    }
    if (vols->vols != VOLS_REMOVED &&
        (!csi_volumes_teardown_step(p, &kept) || !storage_volumes_teardown_step(p, &kept))) {
        if (kept)
            volumes_set_state(p, VOLS_REMOVED);
        return kept;
    }
    switch (vols->vols) {
    case VOLS_REMOVED:
        return true;
    case VOLS_SETTING_UP:
        op_cancel(&vols->vols_call.op);
        return false;
    case VOLS_REMOVING:
        return false;
    case VOLS_NONE:
    case VOLS_READY:
        break;
    }
    if (vols->vols_held && !p->node->draining)
        return false;
    vols->vols_held = false;
    if (!clock_boot_is_due(vols->vols_retry_at) && vols->vols == VOLS_READY) {
        pod_wake_at(p, vols->vols_retry_at, "volume removal is tried again");
        return false;
    }
    volumes_set_state(p, VOLS_REMOVING);
    vols->vols_mount_round = mount_watch_rounds(p->node);
    proc_call_start(&vols->vols_call, &call, p->node->o.loop, on_removed, p);
    return false;
}
