/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/admit/admit.h"
#include "agent/pod/admit/hugepages_watch.h"
#include "agent/pod/admit/internal.h"
#include "agent/pod/admit/resize.h"
#include "agent/pod/limits/cpu_memory.h"

static void admit_save(const struct pod *p, json_t *record)
{
    cpu_memory_save(&admit_of(p)->sizes, record);
}

static void admit_load(struct pod *p, const json_t *record)
{
    cpu_memory_load(&admit_of(p)->sizes, record);
}

const struct room admit_room = {
    .id = ROOM_ADMIT,
    .name = "admit",
    .node = { .size = sizeof(struct admit_node), .cancel = hugepages_watch_end, .free = hugepages_watch_end },
    .pod = { .size = sizeof(struct admit_pod_part),
             .step = resize_step,
             .end = resize_forget,
             .free = resize_forget,
             .save = admit_save,
             .load = admit_load },
};
