/* SPDX-License-Identifier: Apache-2.0 */
/* mount_watch - reports changes of the host's mounts while something waits for a foreign mount to disappear:
 * volumes of an ended pod, or left-overs. Otherwise no descriptor is open and nothing wakes up. Loop thread
 * only. */
#ifndef AGENT_POD_LEFTOVERS_MOUNT_WATCH_H
#define AGENT_POD_LEFTOVERS_MOUNT_WATCH_H
#include "agent/pod/core/pod.h"

/* Starts watching, if it does not yet. After a change, at most once a second, pods with blocked volumes and
 * left-overs are retried; watching ends with the last of them. *ret_new: it has just started, so earlier
 * changes are not reported: check once more. ERR_UNAVAILABLE, ERR_EXHAUSTED: not possible; retry by time. */
enum err_code mount_watch_begin(struct node *n, bool *ret_new, struct err *e) MUST_CHECK;
/* Counts the rounds: what is the same after a look as before it was not missed by that look.  0: not
 * watching. */
unsigned mount_watch_rounds(const struct node *n);
void mount_watch_end(struct node *n);
#endif
