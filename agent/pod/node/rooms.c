/* SPDX-License-Identifier: Apache-2.0 */
/* rooms - the table of rooms, in the order in which a pod's steps are taken. */
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/container.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/image/images.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/node/node.h"
#include "agent/pod/placement/placement.h"
#include "agent/pod/project/project.h"
#include "agent/pod/record/record.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/show/provider.h"
#include "agent/pod/status/status.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/volume/volumes.h"
#include "agent/pod/worker/worker.h"

const struct room *const node_rooms[] = {
    &core_room,   &placement_room, &device_room,  &project_room, &limits_room, &leftovers_room,
    &admit_room,  &usage_room,     &sandbox_room, &volume_room,  &image_room,  &container_room,
    &record_room, &eviction_room,  &status_room,  &worker_room,  &show_room,   NULL,
};
