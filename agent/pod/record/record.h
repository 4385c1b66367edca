/* SPDX-License-Identifier: Apache-2.0 */
/* record - shared by writing (record.c), reading (record_read.c) and loading (record_load.c) of pods'
 * records. */
#ifndef AGENT_POD_RECORD_RECORD_H
#define AGENT_POD_RECORD_RECORD_H
#include "agent/pod/core/pod.h"

#define RECORD_VERSION 1
/* Makes a pod from a record's text. `name`: "<uid>.json", its own or that of the file it replaces; `durable`:
 * it is on disk. ERR_INVALID: damaged, or another version; ERR_EXISTS: the pod exists already; after an error
 * there is no new pod. */
#define RECORD_MAX (12 * 1024 * 1024)
enum err_code record_read(struct node *n, const char *name, const char *text, size_t size, bool durable,
                          struct err *e) MUST_CHECK;
#endif
