/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve - descriptors that are kept for pods.  The socket's clients get what is left beyond them.
 *
 * The daemon may have its hard limit of open files.  Of these it keeps a quarter, RESERVE_MAX at most: a step
 * of a pod opens some 10 (pipes, pidfd, cgroup, record), and some 20 of them run at a time.  Root's clients
 * may use half of the reserve, since somebody has to be able to look.
 *
 * Loop thread only.
 */
#ifndef AGENT_STATUS_RESERVE_H
#define AGENT_STATUS_RESERVE_H
#include <stdbool.h>

#define RESERVE_MAX 256

/* How many descriptors of those that are kept for pods the clients have by now.  Not known: none. */
unsigned long long reserve_lack(bool root);
#endif
