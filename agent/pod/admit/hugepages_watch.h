/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugepages_watch - notices that somebody sets huge pages of this node aside, or gives them back, while the
 * agent runs.  The kernel sends no event for that, but who writes the number writes one of a few files, and
 * these can be watched: /sys/kernel/mm/hugepages, those of each memory node, /proc/sys/vm/nr_hugepages.  What
 * is not seen (pages of a memory block that is taken out) counts with the next look, since numbers are never
 * kept (hugepages.h).  A change wakes the pods that wait, and is told by an event of the node.  Loop thread
 * only.
 */
#ifndef AGENT_POD_ADMIT_HUGEPAGES_WATCH_H
#define AGENT_POD_ADMIT_HUGEPAGES_WATCH_H
struct node;
struct hugepages_watch;

void hugepages_watch_begin(struct node *n); /* without memory: a line in the log, and there is none */
void hugepages_watch_end(struct node *n);
#endif
