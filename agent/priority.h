/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priority - raises the priority of the loop's thread, which decides about evictions. On a machine with ten
 * times more work than processors, a thread of normal priority was scheduled up to 160 ms late, and in that
 * time a pod can take more memory than the threshold reserves. The thread runs for milliseconds at a time and
 * is otherwise idle, so other threads are hardly affected.
 *
 * Best effort. A priority set by the unit file or the user is kept. Children and other threads have normal
 * priority.
 */
#ifndef AGENT_PRIORITY_H
#define AGENT_PRIORITY_H

#define PRIORITY_NICE (-15) /* below the kernel's own work (-20); a weight of 29154 against 1024 */

void priority_raise(void); /* for the calling thread, before it starts others */
#endif
