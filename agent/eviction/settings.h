/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings - thresholds and other settings of eviction, as in KubeletConfiguration. Plain values, copied
 * freely; pure.
 */
#ifndef AGENT_EVICTION_SETTINGS_H
#define AGENT_EVICTION_SETTINGS_H
#include "agent/api/quantity.h"
#include "agent/eviction/signal.h"
#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

struct ev_amount {               /* quantity and share 0: none */
    uint64_t quantity;           /* at most INT64_MAX */
    enum quantity_format format; /* the configured format of the quantity, for texts */
    float share;                 /* of the capacity, 0 to 1: kubelet also has the precision of a float32 */
};
uint64_t ev_amount_of(const struct ev_amount *a, uint64_t capacity);
/* Canonical form; a share of the capacity is written in binary units, as by kubelet. */
void ev_amount_text(const struct ev_amount *a, uint64_t capacity, char ret[QUANTITY_TEXT_SIZE]);
/* An available or used amount, as in kubelet's messages: bytes in binary units, numbers in decimal ones. */
void ev_value_text(enum ev_signal s, uint64_t value, char ret[QUANTITY_TEXT_SIZE]);
/* "100Mi", "5%". `0%` and `100%` mean none, as in kubelet; zero: whether a quantity may be 0. */
enum err_code ev_amount_parse(const char *text, bool zero, struct ev_amount *ret, struct err *e) MUST_CHECK;

struct ev_threshold {
    enum ev_signal signal;
    bool soft;
    struct ev_amount value, reclaim; /* reclaim: evictionMinimumReclaim */
    uint64_t grace_ms;               /* soft: how long it must be exceeded */
};
/* A hard and a soft threshold of each signal, and the implied threshold of all pods' memory beside a
 * configured one. */
#define EV_THRESHOLDS_MAX (2 * EV_SIGNALS + 1)

struct ev_settings {
    struct ev_threshold v[EV_THRESHOLDS_MAX];
    size_t n;
    int64_t max_pod_grace_s; /* evictionMaxPodGracePeriod; below 0: a pod's own */
    uint64_t transition_ms;  /* evictionPressureTransitionPeriod */
};

/* The four maps of the configuration (name -> text), any of which may be NULL. Fills in the thresholds only.
 * ERR_INVALID names the setting and the signal: an unknown signal, a value that is no amount, a soft
 * threshold without a grace period. */
enum err_code ev_settings_parse(struct ev_settings *ret, const json_t *hard, const json_t *soft,
                                const json_t *soft_grace, const json_t *reclaim, struct err *e) MUST_CHECK;
/* Adds implied thresholds: allocatableMemory.available from hard memory.available if `pods_enforced` (the
 * limit of all pods together is enforced); containerfs.* from nodefs.* or imagefs.* by layout, replacing
 * configured ones. The settings must be as parsed. */
void ev_settings_complete(struct ev_settings *s, enum ev_layout layout, bool pods_enforced);
#endif
