/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep - what belongs to no pod is removed: left-overs of a run that was killed, of damaged records, of a
 * reboot.  Containers, network attachments, namespaces, volumes, cgroups, logs; each by what the kernel and
 * the disk say.  What cannot be removed is tried again, every minute in the end.
 * Loop thread only.
 */
#ifndef AGENT_POD_LEFTOVERS_SWEEP_H
#define AGENT_POD_LEFTOVERS_SWEEP_H
#include "agent/pod/core/pod.h"

extern const struct room leftovers_room;

/* Once, when the sources are ready: only then is it known what belongs to nobody.  Counted in node.sweeps
 * while under way. */
void sweep_start(struct node *n);
/* Of these the network attachments; later on, too. */
void sweep_network(struct node *n);
/* What is left of a pod that is gone is removed now; what cannot be is tried again with back-off, shown in
 * `explain node`, until it is gone or a pod of that uid is there. */
void sweep_record(struct node *n, const char *uid);
void sweep_logs(struct node *n, const char *folder); /* "<namespace>_<name>_<uid>" */
void sweep_cancel(struct node *n);                   /* the agent ends: what is left is for the next start */
void sweep_hurry(struct node *n); /* all is being taken down: what waits is tried now, and given up soon */
/* Volumes that a mount of somebody else held are tried now; false: there are none. */
bool sweep_mounts_changed(struct node *n);
/* Calls fn for each left-over that is still being removed; error: of its last try, "" while none failed. */
void sweep_each(struct node *n, void (*fn)(const char *what, const char *id, const char *error, void *arg),
                void *arg);
#endif
