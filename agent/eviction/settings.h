/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings - thresholds and other settings of eviction, as in KubeletConfiguration. Plain values, copied
 * freely; pure.
 */
#ifndef AGENT_EVICTION_SETTINGS_H
#define AGENT_EVICTION_SETTINGS_H
#include "agent/eviction/signal.h"
#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

struct ev_amount { /* both 0: nothing */
    uint64_t quantity;
    float share; /* of the capacity, 0 to 1, as kubelet's float32 */
};
uint64_t ev_amount_of(const struct ev_amount *a, uint64_t capacity);

struct ev_threshold {
    enum ev_signal signal;
    bool soft;
    struct ev_amount value, reclaim; /* reclaim: evictionMinimumReclaim */
    uint64_t grace_ms;               /* soft: how long it must be exceeded */
};
#define EV_THRESHOLDS_MAX (2 * EV_SIGNALS)

struct ev_settings {
    struct ev_threshold v[EV_THRESHOLDS_MAX];
    size_t n;
    int64_t max_pod_grace_s; /* evictionMaxPodGracePeriod */
    uint64_t transition_ms;  /* evictionPressureTransitionPeriod */
};

/* The four maps of the configuration (name -> text), any of which may be NULL. `0%` and `100%` are ignored as
 * in kubelet. ERR_INVALID names the setting and the signal. */
enum err_code ev_settings_parse(struct ev_settings *ret, const json_t *hard, const json_t *soft,
                                const json_t *soft_grace, const json_t *reclaim, struct err *e) MUST_CHECK;
/* Adds implied thresholds: allocatableMemory.available from hard memory.available if `pods_enforced`;
 * containerfs.* from nodefs.* or imagefs.* by layout, whatever is configured for them. */
void ev_settings_complete(struct ev_settings *s, enum ev_layout layout, bool pods_enforced);
#endif
