/* SPDX-License-Identifier: Apache-2.0 */
/* devices - the devices of this node and the containers that hold them, for the socket. Loop thread. */
#ifndef AGENT_POD_SHOW_DEVICES_H
#define AGENT_POD_SHOW_DEVICES_H
#include "agent/pod/core/pod.h"

/* A name for each device: first those that are offered, by resource, then those that are only held. NULL: out
 * of memory. */
json_t *devices_keys(struct node *n, bool held_only);
/* {"resource","id","health","numaNodes","provider","pod","containers"}; NULL: it is gone. */
json_t *device_json(struct node *n, const char *name);
/* device_metrics.c: of device plugins under kubelet's names, of extended resources under ours. */
void devices_metrics(const struct node *n, struct buf *out);
/* explain_devices.c */
void devices_explain_node(const struct node *n, json_t *steps);
#endif
