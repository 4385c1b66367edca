/* SPDX-License-Identifier: Apache-2.0 */
/* record - what writing (record.c), reading (record_read.c) and loading (record_load.c) of pods' records
 * share. */
#ifndef AGENT_POD_RECORD_RECORD_H
#define AGENT_POD_RECORD_RECORD_H
#include "agent/pod/core/pod.h"

#define RECORD_VERSION 1
#define RECORD_MAX (12 * 1024 * 1024)

/*
 * Makes a pod of a record's text.  `name`: "<uid>.json", the text's own or that of the file it stands in for;
 * `durable`: it is on the disk.  ERR_INVALID: it is damaged, or of another version; ERR_EXISTS: the pod is
 * there already; on an error there is no new pod.
 */
enum err_code record_read(struct node *n, const char *name, const char *text, size_t size, bool durable,
                          struct err *e) MUST_CHECK;
#endif
