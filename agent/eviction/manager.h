/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manager - decides, from what is observed, which conditions the node has, whether something must be
 * reclaimed, and which pods go: kubelet's pkg/kubelet/eviction/eviction_manager.go, without its fixed rounds.
 * Pure: the caller brings observations and the time, and carries decisions out.
 *
 * One look:
 *   1. ev_manager_look() with fresh values updates thresholds and conditions. EV_DO_NOTHING ends the look.
 *   2. EV_DO_RECLAIM: the node's own reserves go first (ended containers, unused images). The caller
 * reclaims, observes again and calls ev_manager_reclaimed().
 *   3. EV_DO_EVICT: the caller brings all pods, ev_manager_choose() ranks them and names victims. One, unless
 *      its usage cannot be enough: then as many as are expected to be, because the next look would only
 *      repeat the choice. Usage of pods that are ending already is expected to be released.
 *
 * Soft and hard thresholds, grace periods, minimum reclaim and the transition period follow kubelet. A
 * condition is set at once, soft thresholds included. Times are clock_boot_ms() of the caller.
 */
#ifndef AGENT_EVICTION_MANAGER_H
#define AGENT_EVICTION_MANAGER_H
#include "agent/eviction/message.h"

struct ev_manager;

enum ev_do { EV_DO_NOTHING, EV_DO_RECLAIM, EV_DO_EVICT };

struct ev_look {
    enum ev_do todo;
    struct ev_crossing crossing; /* of the first threshold that counts: memory before all others */
    /* When to look again although nothing new is observed: a grace or transition period ends. 0: never. */
    uint64_t again_ms;
    unsigned changed; /* bits by enum ev_condition */
};

struct ev_choice {
    const struct ev_pod **ranked; /* all candidates in order, malloc'ed array */
    size_t n_ranked;
    size_t *victims; /* indices into ranked, malloc'ed; n_victims 0: nobody can be evicted */
    size_t n_victims;
    int64_t grace_s; /* for victim i: the smaller of this and its own; -1: its own */
};

/* `s` is completed (ev_settings_complete()) and copied. NULL: no memory. */
struct ev_manager *ev_manager_new(const struct ev_settings *s, enum ev_layout layout);
void ev_manager_free(struct ev_manager *m); /* NULL is fine */
/* New settings or layout: what was seen of thresholds that are the same stays. */
enum err_code ev_manager_change(struct ev_manager *m, const struct ev_settings *s, enum ev_layout layout,
                                struct err *e) MUST_CHECK;

void ev_manager_look(struct ev_manager *m, const struct ev_observation *o, uint64_t now_ms,
                     struct ev_look *ret);
/* After EV_DO_RECLAIM: EV_DO_NOTHING if that was enough, otherwise EV_DO_EVICT. */
void ev_manager_reclaimed(struct ev_manager *m, const struct ev_observation *o, uint64_t now_ms,
                          struct ev_look *ret);
enum err_code ev_manager_choose(struct ev_manager *m, const struct ev_look *look, const struct ev_pod *pods,
                                size_t n_pods, struct ev_choice *ret, struct err *e) MUST_CHECK;
void ev_choice_done(struct ev_choice *c); /* frees what it has */

/* The node's conditions; *ret_since_ms: of the last transition, 0 if there was none. */
bool ev_manager_pressure(const struct ev_manager *m, enum ev_condition c, uint64_t *ret_since_ms);
const struct ev_settings *ev_manager_settings(const struct ev_manager *m);
enum ev_layout ev_manager_layout(const struct ev_manager *m);

/* How much may still be used until the first threshold of this signal is crossed; UINT64_MAX: it has none. 0:
 * it is crossed. */
uint64_t ev_manager_headroom(const struct ev_manager *m, enum ev_signal s, const struct ev_value *v);
#endif
