/* SPDX-License-Identifier: Apache-2.0 */
/* record_save - a pod's record: written, synced, removed.  Loop thread only. */
#ifndef AGENT_POD_RECORD_RECORD_SAVE_H
#define AGENT_POD_RECORD_RECORD_SAVE_H
#include "agent/pod/core/pod.h"

extern const struct room record_room;

void record_step(struct pod *p);               /* what changed is written, or tried again */
const char *record_error(const struct pod *p); /* why it cannot be written; NULL: it can */
void record_is_aside(struct pod *p);           /* it was read from the run folder */
void record_outdated(struct pod *p); /* the next save writes it, whether it says something else or not */
/* *ret_written: false if the file is already up to date. */
enum err_code record_save(struct pod *p, bool *ret_written, struct err *e) MUST_CHECK;
void record_remove(struct pod *p); /* failed removals are retried (sweep.h) */
void record_sync(struct pod *p);   /* after each record_save() that wrote */
void record_sync_forget(struct pod *p);
#endif
