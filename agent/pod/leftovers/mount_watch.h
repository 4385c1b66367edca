/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_watch - tells when mounts of this host changed, as long as somebody waits for one to go: volumes of a
 * pod that ended, or left-overs, held by a mount that is not ours.  Nobody waits: no descriptor is open and
 * nothing wakes.  Loop thread only.
 */
#ifndef AGENT_POD_LEFTOVERS_MOUNT_WATCH_H
#define AGENT_POD_LEFTOVERS_MOUNT_WATCH_H
#include "agent/pod/core/pod.h"

/*
 * Begins to watch, if it does not yet.  After a change, at most once a second, pods whose volumes are held
 * and left-overs are tried again; it ends with the last of them.  *ret_new: it begins now, and what changed
 * before is not told: look once more.  ERR_UNAVAILABLE, ERR_EXHAUSTED: it cannot; try by time.
 */
enum err_code mount_watch_begin(struct node *n, bool *ret_new, struct err *e) MUST_CHECK;
/* Counts the rounds: what is the same after a look as before it was not missed by that look.  0: not
 * watching. */
unsigned mount_watch_rounds(const struct node *n);
void mount_watch_end(struct node *n);
#endif
