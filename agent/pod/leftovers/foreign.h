/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign - pods of other software on this node: the folders below <rootDir>/pods and the logs that existed
 * before the first start of an agent with this state folder, for example a kubelet's.
 *
 * None of our records ever named them: they are listed once, in <state>/foreign-pods, before the folder of
 * records is made, and the sweep (sweep.h) never removes anything of them. If an earlier version made that
 * folder but no list, only what is marked by a kubelet is foreign. Whether the list exists is checked, not
 * assumed: while that is unknown, or the list is incomplete, nothing of these kinds is removed. Loop thread.
 */
#ifndef AGENT_POD_LEFTOVERS_FOREIGN_H
#define AGENT_POD_LEFTOVERS_FOREIGN_H
#include "agent/pod/leftovers/sweep.h"

/* Reads the list, or makes it if missing; calling it once is enough. After a failure: retry later. */
enum err_code foreign_load(struct node *n, struct err *e) MUST_CHECK;
/* After foreign_load(). */
bool foreign_has(const struct node *n, const char *uid);
/* "<namespace>_<name>_<uid>" -> the uid, in place; NULL: not the name of a pod's logs. */
const char *foreign_uid_of_logs(const char *folder);
/* If all pods were removed (--ephemeral), removes the list, too: the next start makes its own. */
void foreign_free(struct node *n);
#endif
