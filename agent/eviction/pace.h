/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace - when to look at a file system or at process ids again: as late as possible, but before what is left
 * can be used up. The rate seen decides; one that rests is looked at less and less often, up to PACE_MAX_MS.
 * Pure.
 */
#ifndef AGENT_EVICTION_PACE_H
#define AGENT_EVICTION_PACE_H
#include "agent/eviction/signal.h"

#define PACE_MIN_MS 100
#define PACE_MAX_MS 300000 /* kubelet's interval of image collection: this node looks no less often */

struct ev_pace { /* initialize to { 0 } */
    uint64_t at_ms, available, peak_per_s, wait_ms;
};
/* A value was observed; headroom: until the threshold. Returns in how many ms to look again. */
uint64_t ev_pace_next(struct ev_pace *p, const struct ev_value *v, uint64_t headroom, uint64_t now_ms);
/* Something began that may use it up (I/O pressure, a pod started, a quota warning): in how many ms to look.
 */
uint64_t ev_pace_wake(struct ev_pace *p, uint64_t now_ms);
#endif
