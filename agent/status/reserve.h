/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve - file descriptors reserved for pods; the socket's clients may use all others.
 *
 * A quarter of the daemon's hard limit of open files is reserved, at most RESERVE_MAX: a step of a pod opens
 * about 10 (pipes, pidfd, cgroup, record), and about 20 steps run at a time. Root's clients may use half of
 * the reserve, so that diagnosis stays possible.
 *
 * Loop thread only.
 */
#ifndef AGENT_STATUS_RESERVE_H
#define AGENT_STATUS_RESERVE_H
#include <stdbool.h>

#define RESERVE_MAX 256

/* Number of descriptors reserved for pods that clients use now; 0 if unknown. */
unsigned long long reserve_lack(bool root);
#endif
