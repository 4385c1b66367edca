/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priority - the loop's thread runs before others that want a processor. It decides about evictions: a thread
 * of the usual priority was scheduled up to 160 ms late on a machine with ten times more work than
 * processors, in which a pod takes more memory than the threshold keeps. The thread runs for milliseconds at
 * a time and is idle otherwise, so that others hardly notice.
 *
 * Best effort. A priority that the unit file or the user chose stays. Children and other threads have the
 * usual one.
 */
#ifndef AGENT_PRIORITY_H
#define AGENT_PRIORITY_H

#define PRIORITY_NICE (-15) /* below the kernel's own work (-20); a weight of 29154 against 1024 */

void priority_raise(void); /* of the calling thread, before it makes others */
#endif
