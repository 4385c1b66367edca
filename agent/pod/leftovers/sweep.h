/* SPDX-License-Identifier: Apache-2.0 */
/* sweep - removes what belongs to no pod: left-overs of a killed run, of damaged records, of a reboot.
 * Containers, network attachments, namespaces, volumes, cgroups, logs, each as found in the kernel or on
 * disk. Failed removals are retried, finally every minute. Loop thread only. */
#ifndef AGENT_POD_LEFTOVERS_SWEEP_H
#define AGENT_POD_LEFTOVERS_SWEEP_H
#include "agent/pod/core/pod.h"

extern const struct room leftovers_room;

/* Once, when the sources are ready: only then it is known what belongs to no pod. Counted in node.sweeps
 * while in progress. */
void sweep_start(struct node *n);
/* Only the network attachments; may be repeated later. */
void sweep_network(struct node *n);
/* Removes what is left of a deleted pod; failures are retried with back-off and shown in `explain node`,
 * until it is gone or a pod of that uid exists. */
void sweep_record(struct node *n, const char *uid);
void sweep_logs(struct node *n, const char *folder); /* "<namespace>_<name>_<uid>" */
void sweep_cancel(struct node *n);                   /* the agent ends: the rest is left for the next start */
void sweep_hurry(struct node *n); /* everything is being removed: retry waiting ones now, and give up soon */
/* Retries volumes that were blocked by a foreign mount; false: there are none. */
bool sweep_mounts_changed(struct node *n);
/* Calls fn for each left-over that is still being removed; error: of its last try, or "". */
void sweep_each(struct node *n, void (*fn)(const char *what, const char *id, const char *error, void *arg),
                void *arg);

/* ---- pods of other software: foreign.h ---- */
/* Before the folder of records exists: makes the list at the first start. Blocking. */
enum err_code foreign_begin(struct node *n, struct err *e) MUST_CHECK;

/* ---- changes of the host's mounts: mount_watch.h ---- */
/* Starts watching, if it does not yet. After a change, at most once a second, pods with blocked volumes and
 * left-overs are retried; watching ends with the last of them. *ret_new: it has just started, so earlier
 * changes are not reported: check once more. ERR_UNAVAILABLE, ERR_EXHAUSTED: not possible; retry by time. */
enum err_code mount_watch_begin(struct node *n, bool *ret_new, struct err *e) MUST_CHECK;
/* Counts the rounds: what is the same after a look as before it was not missed by that look.  0: not
 * watching. */
unsigned mount_watch_rounds(const struct node *n);
#endif
