/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admissions - how many pods were judged by their devices and topology, and how long it took, for kubelet's
 * metrics of its topology manager. Pods that ask for no device are included, the wait for a provider is not.
 * Loop thread.
 */
#ifndef AGENT_POD_DEVICE_ADMISSIONS_H
#define AGENT_POD_DEVICE_ADMISSIONS_H
#include <stdbool.h>
#include <stdint.h>

#define ADMISSION_BUCKETS 15 /* kubelet's: 0.05 ms, each twice the one before (pkg/kubelet/metrics) */

struct admissions {
    uint64_t pods, refused;      /* refused: by topology only */
    uint64_t aligned, unaligned; /* to one NUMA node: containers, or pods; only if the policy demands it */
    uint64_t took_ns, buckets[ADMISSION_BUCKETS];
};

uint64_t admissions_bound_ns(unsigned bucket);
void admissions_add(struct admissions *a, uint64_t took_ns, bool refused);
#endif
