/* SPDX-License-Identifier: Apache-2.0 */
/* What device keeps of the node and of a pod for itself. */
#ifndef AGENT_POD_DEVICE_INTERNAL_H
#define AGENT_POD_DEVICE_INTERNAL_H
#include "agent/pod/device/devices.h"

struct device_node {
    struct dp_inventory *inventory;
    struct dp_holdings *holdings;
    struct dp_plugins *plugins; /* NULL: they cannot be served */
};

static inline struct device_node *device_node(const struct node *n)
{
    return n->parts[ROOM_DEVICE];
}
#endif
