/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/live_sub_path.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"

static void volume_init(struct pod *p)
{
    p->vols_since_ns = clock_wall_ns();
}

static void volume_step(struct pod *p)
{
    volumes_step(p);
    live_sub_path_step(p);
}

static bool volume_busy(const struct pod *p)
{
    return op_live(&p->vols_call.op) || op_live(&p->live_call.op);
}

static void volume_cancel(struct pod *p)
{
    if (op_live(&p->vols_call.op))
        op_cancel(&p->vols_call.op);
    if (op_live(&p->live_call.op))
        op_cancel(&p->live_call.op);
}

static void volume_end(struct pod *p)
{
    p->vols_retry_at = CLOCK_BOOT_NONE;
}

static void volume_reset(struct pod *p)
{
    p->vols = VOLS_NONE;
    p->vols_since_ns = clock_wall_ns();
    p->vols_error[0] = p->vols_event[0] = '\0';
    p->vols_retry_at = CLOCK_BOOT_NONE;
    p->payload_stale = false;
}

static void volume_free(struct pod *p)
{
    free(take_ptr(&p->overlaps));
}

const struct room volume_room = {
    .id = ROOM_VOLUME,
    .name = "volume",
    .pod = { .init = volume_init,
             .step = volume_step,
             .busy = volume_busy,
             .cancel = volume_cancel,
             .end = volume_end,
             .reset = volume_reset,
             .free = volume_free },
};
