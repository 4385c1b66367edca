/* SPDX-License-Identifier: Apache-2.0 */
/* node_written_file - <state>/node.json: {"version": 1, "uid", "created", "labels", "annotations", "taints",
 * "configured", "unschedulable", "managedFields", ...}. Blocking; loop thread only. */
#ifndef AGENT_POD_CORE_NODE_WRITTEN_FILE_H
#define AGENT_POD_CORE_NODE_WRITTEN_FILE_H
#include "agent/pod/core/node.h"

#include <jansson.h>

/* New; NULL: there is none, or it is damaged, which is logged, and it is set aside. *ret_unknown: it may be
 * there, but cannot be read. */
json_t *node_written_load(const struct node *n, bool *ret_unknown);
/* Durable: replaced by rename. ERR_EXHAUSTED: the disk is full; ERR_INVALID: it is too long. */
enum err_code node_written_save(const struct node *n, const json_t *kept, struct err *e) MUST_CHECK;
/* After a run that leaves nothing behind (--ephemeral). */
void node_written_remove(const struct node *n);
#endif
