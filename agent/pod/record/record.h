/* SPDX-License-Identifier: Apache-2.0 */
/* record - a pod's record: written, synced, removed; damaged state files. Loop thread only. */
#ifndef AGENT_POD_RECORD_RECORD_H
#define AGENT_POD_RECORD_RECORD_H
#include "agent/pod/core/pod.h"

#define RECORD_VERSION 1
#define RECORD_MAX (12 * 1024 * 1024)

extern const struct room record_room;

void record_step(struct pod *p);               /* writes a changed record, or repeats a failed write */
const char *record_error(const struct pod *p); /* why it cannot be written; NULL: it can */
void record_is_aside(struct pod *p);           /* it was read from the run folder */
/* It was read from `text`, which is on the disk: the next save writes it only if it says something else. */
void record_is_saved(struct pod *p, const char *text, const json_t *record);
void record_outdated(struct pod *p); /* the next save writes it even if its content has not changed */
/* *ret_written: false if the file is already up to date. */
enum err_code record_save(struct pod *p, bool *ret_written, struct err *e) MUST_CHECK;
/* Into the run folder only, which waits for no disk: for a restart of the agent, when something must happen
 * before record_save() can be waited for. False: it could not be written. The next save removes it. */
bool record_save_ahead(struct pod *p) MUST_CHECK;
void record_remove(struct pod *p); /* failed removals are retried (sweep.h) */
void record_sync(struct pod *p);   /* after each record_save() that wrote */
void record_sync_forget(struct pod *p);

/* ---- quarantine.c: damaged state files that were set aside ---- */
/* A node event for each file set aside since then. */
void quarantine_report(struct node *n, int64_t since_ns);
/* A step of `coracle explain node` while there are any: people examine and then remove them. */
void quarantine_explain(struct node *n, json_t *steps);
#endif
