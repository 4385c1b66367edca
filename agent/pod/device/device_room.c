/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/device/internal.h"

const struct dp_inventory *devices_inventory(const struct node *n)
{
    return device_node(n)->inventory;
}

struct dp_inventory *devices_inventory_fill(struct node *n)
{
    return device_node(n)->inventory;
}

const struct dp_holdings *devices_holdings(const struct node *n)
{
    return device_node(n)->holdings;
}

const struct dp_plugins *devices_plugins(const struct node *n)
{
    return device_node(n)->plugins;
}

const struct room device_room = {
    .id = ROOM_DEVICE,
    .name = "device",
    .node = { .size = sizeof(struct device_node) },
};
