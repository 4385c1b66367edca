/* SPDX-License-Identifier: Apache-2.0 */
/* write_node - the Node of a machine that joins no cluster, for write.h: it is no file of the manifest folder
 * but one of the state folder (node_written.h). Loop thread only. */
#ifndef AGENT_POD_SHOW_WRITE_NODE_H
#define AGENT_POD_SHOW_WRITE_NODE_H
#include "agent/pod/core/node.h"
#include "agent/status/server.h"

#define WRITE_MARK_SIZE 20

/* {"object", "mark"}; NULL with *e. */
json_t *write_node_stored(struct node *n, const char *name, struct err *e);
/* A PUT, as in write.h. */
void write_node(struct node *n, json_t *request /* stolen */, struct status_reply *r);

/* ---- write_mark.c ---- */
/* Differs if the manifest differs, without the status and members that only the node sets. "": no memory. */
void write_mark_of(const json_t *object, char ret[WRITE_MARK_SIZE]);
json_t *write_versioned(struct node *n, enum status_kind kind, json_t *object /* stolen */);
#endif
