/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugepages_watch - detects changes to the number of reserved huge pages. The kernel sends no event, but the
 * number can only be changed through a few files, which are watched with inotify: /sys/kernel/mm/hugepages,
 * those of each memory node, /proc/sys/vm/nr_hugepages. Other changes (pages of an unplugged memory block)
 * take effect at the next read, because numbers are never cached (hugepages.h). A change wakes waiting pods
 * and is reported by an event of the node. Loop thread only.
 */
#ifndef AGENT_POD_ADMIT_HUGEPAGES_WATCH_H
#define AGENT_POD_ADMIT_HUGEPAGES_WATCH_H
#include "agent/pod/admit/admit.h"
struct node;
struct hugepages_watch;

void hugepages_watch_end(struct node *n);
#endif
