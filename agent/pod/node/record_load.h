/* SPDX-License-Identifier: Apache-2.0 */
/* record_load - after a restart, makes a pod from each record. Loop thread only. */
#ifndef AGENT_POD_NODE_RECORD_LOAD_H
#define AGENT_POD_NODE_RECORD_LOAD_H
#include "agent/pod/core/pod.h"

/* Makes a pod from each record; damaged ones are set aside (base/files/damaged_file.h) and logged. */
enum err_code record_load_all(struct node *n, struct err *e) MUST_CHECK;

/* Makes a pod from a record's text. `name`: "<uid>.json", its own or that of the file it replaces; `durable`:
 * it is on disk. ERR_INVALID: damaged, or another version; ERR_EXISTS: the pod exists already; after an error
 * there is no new pod. */
enum err_code record_read(struct node *n, const char *name, const char *text, size_t size, bool durable,
                          struct err *e) MUST_CHECK;
#endif
