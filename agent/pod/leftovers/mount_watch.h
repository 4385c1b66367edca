/* SPDX-License-Identifier: Apache-2.0 */
/* mount_watch - reports changes of the host's mounts while something waits for a foreign mount to disappear:
 * volumes of an ended pod, or leftovers. Otherwise no descriptor is open and nothing wakes up. Loop thread
 * only. */
#ifndef AGENT_POD_LEFTOVERS_MOUNT_WATCH_H
#define AGENT_POD_LEFTOVERS_MOUNT_WATCH_H
#include "agent/pod/leftovers/sweep.h"

void mount_watch_end(struct node *n);
#endif
