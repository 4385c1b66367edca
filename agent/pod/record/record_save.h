/* SPDX-License-Identifier: Apache-2.0 */
/* record_save - a pod's record: written, synced, removed.  Loop thread only. */
#ifndef AGENT_POD_RECORD_RECORD_SAVE_H
#define AGENT_POD_RECORD_RECORD_SAVE_H
#include "agent/pod/core/pod.h"

extern const struct room record_room;

/* *ret_written: false if the file is already up to date. */
enum err_code record_save(struct pod *p, bool *ret_written, struct err *e) MUST_CHECK;
void record_remove(struct pod *p); /* failed removals are retried (sweep.h) */
void record_sync(struct pod *p);   /* after each record_save() that wrote */
void record_sync_forget(struct pod *p);
#endif
