/* SPDX-License-Identifier: Apache-2.0 */
/* node_machine - the machine in status.nodeInfo: its ids and its system (pkg/kubelet/nodestatus/setters.go).
 */
#ifndef AGENT_POD_SHOW_NODE_MACHINE_H
#define AGENT_POD_SHOW_NODE_MACHINE_H
#include <jansson.h>

/* Adds machineID, systemUUID and osImage, as the files below `root` ("" on a node) have them; missing values
 * are omitted, except systemUUID, which is then the machine's id. Reads small files of the local disk. */
void node_machine_put(json_t *info, const char *root);
#endif
