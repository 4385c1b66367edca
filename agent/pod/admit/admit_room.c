/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/admit/admit.h"
#include "agent/pod/admit/hugepages_watch.h"
#include "agent/pod/admit/internal.h"
#include "agent/pod/admit/resize.h"

const struct room admit_room = {
    .id = ROOM_ADMIT,
    .name = "admit",
    .node = { .size = sizeof(struct admit_node), .cancel = hugepages_watch_end, .free = hugepages_watch_end },
    .pod = { .size = sizeof(struct admit_pod_part),
             .step = resize_step,
             .end = resize_forget,
             .free = resize_forget },
};
