/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign - pods of somebody else on this node: the folders below <rootDir>/pods and the logs that were
 * there before the first start of an agent with this state folder, of a kubelet for example.
 *
 * No record of ours names them, and none ever did: they are written down once, in <state>/foreign-pods,
 * before the folder of records is made, and the sweep (sweep.h) never removes anything of theirs.  Where an
 * earlier version made that folder and no list, only what a kubelet has marked as its own is somebody else's.
 * Whether the list is there is looked at, not assumed: as long as that is unknown, or the list cannot be made
 * whole, nothing of these kinds is removed at all.  Loop thread.
 */
#ifndef AGENT_POD_LEFTOVERS_FOREIGN_H
#define AGENT_POD_LEFTOVERS_FOREIGN_H
#include "agent/pod/core/pod.h"

/* Before the folder of records is there: makes the list at the first start.  Blocking. */
enum err_code foreign_begin(struct node *n, struct err *e) MUST_CHECK;
/* Reads the list, or makes it where there is none; once is enough.  On failure: ask again later. */
enum err_code foreign_load(struct node *n, struct err *e) MUST_CHECK;
/* After foreign_load(). */
bool foreign_has(const struct node *n, const char *uid);
/* "<namespace>_<name>_<uid>" -> the uid, in place; NULL: not the name of a pod's logs. */
const char *foreign_uid_of_logs(const char *folder);
/* Where all pods were taken down (--ephemeral), the list is removed, too: the next start makes its own. */
void foreign_free(struct node *n);
#endif
