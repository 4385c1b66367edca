/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manager - decides from observations which conditions the node has, whether resources must be reclaimed, and
 * which pods are evicted: kubelet's pkg/kubelet/eviction/eviction_manager.go, without its fixed rounds. Pure:
 * the caller supplies observations and the time, and carries out decisions.
 *
 * One check, a struct ev_check:
 *   1. ev_manager_check() with fresh values updates thresholds and conditions. EV_DO_NOTHING ends the check.
 *   2. EV_DO_RECLAIM: the node's own reserves are reclaimed first (ended containers, unused images). The
 *      caller reclaims, observes again and calls ev_manager_reclaimed().
 *   3. EV_DO_EVICT: the caller passes all pods, ev_manager_choose() ranks them and chooses victims
 *     (choice.c). If this crossing has no victim, or enough pods are ending already, ev_check_next() returns
 *     the next crossing: a disk may be full while no pod can be evicted for memory.
 *
 * Soft and hard thresholds, grace periods, minimum reclaim and the transition period follow kubelet. A
 * condition is set at once, soft thresholds included. Memory comes before all other signals, hard before
 * soft. Signals without a value keep their last observations and cause no action. Times are clock_boot_ms()
 * of the caller. Any thread, one at a time.
 */
#ifndef AGENT_EVICTION_MANAGER_H
#define AGENT_EVICTION_MANAGER_H
#include "agent/eviction/message.h"

/* kubelet's interval. While a threshold is met, the next check is due after at most this time. */
#define EV_ROUND_MS 10000
/* Two values of a signal within this time measure how fast it is used up. After a hard threshold is met
 * without such a pair, the next check is due after EV_PROBE_MS. */
#define EV_RATE_MAX_MS 1000
#define EV_RATE_MIN_MS 5
#define EV_PROBE_MS 20
/* kubelet's immediateEvictionGracePeriodSeconds. An urgent crossing has 0 instead. */
#define EV_HARD_GRACE_S 1
/* A killed pod is expected to release its resources within this time, kubelet's podCleanupTimeout; later
 * releases are not counted. */
#define EV_RELEASE_MS 30000
#define EV_VICTIMS_MAX 8 /* of one choice */

struct ev_manager;

enum ev_do { EV_DO_NOTHING, EV_DO_RECLAIM, EV_DO_EVICT };

struct ev_check {
    enum ev_do todo;
    struct ev_crossing crossing; /* the cause of the action; unset with EV_DO_NOTHING */
    unsigned reclaim;            /* EV_DO_RECLAIM: the reserves to reclaim, bits by enum ev_reclaim */
    uint64_t now_ms;
    /* When to check again without an event: a grace or transition period ends, or a threshold is crossed. 0:
     * never. */
    uint64_t again_ms;
    unsigned changed; /* conditions that changed, bits by enum ev_condition */
    /* For ev_check_next(). */
    struct ev_crossing all[EV_THRESHOLDS_MAX];
    size_t n_all, at;
    unsigned reclaimed;
    enum ev_layout layout;
};

struct ev_choice {
    const struct ev_pod **ranked; /* all candidates in order, malloc'ed array of borrowed pods */
    size_t n_ranked;
    size_t *victims;  /* indices into ranked, malloc'ed */
    size_t n_victims; /* 0: `enough`, or no pod can be evicted */
    bool enough;      /* the expected release of ending pods is enough */
    /* The grace period of a victim is the smaller of this and its own; -1: its own. The remaining time of a
     * victim that is already ending becomes shorter. */
    int64_t grace_s;
};

/* `s` is completed (ev_settings_complete()) and copied. NULL: no memory. */
struct ev_manager *ev_manager_new(const struct ev_settings *s, enum ev_layout layout);
void ev_manager_free(struct ev_manager *m); /* NULL is fine */
/* Applies new settings or a new layout; the state of unchanged thresholds is kept. */
void ev_manager_change(struct ev_manager *m, const struct ev_settings *s, enum ev_layout layout);

void ev_manager_check(struct ev_manager *m, const struct ev_observation *o, uint64_t now_ms,
                      struct ev_check *ret);
/* After EV_DO_RECLAIM, with `what` its bits, and values observed afterwards: EV_DO_NOTHING if that was
 * enough. */
void ev_manager_reclaimed(struct ev_manager *m, unsigned what, const struct ev_observation *o,
                          uint64_t now_ms, struct ev_check *ret);
/* Proceeds to the next crossing of the same check; EV_DO_NOTHING: there is none. */
void ev_check_next(struct ev_check *look);
/* Call before EV_DO_EVICT, with values that were read after those of the pods; signals without a value keep
 * theirs. Otherwise an amount that a pod released between both reads would be missing from both. Drops
 * crossings that have ended. */
void ev_check_renew(struct ev_check *look, const struct ev_observation *o);

/*
 * Chooses victims for look->crossing: one pod, the first in order that is not critical. More pods only if its
 * usage and the expected release of ending pods cannot be enough: then as many as are expected to suffice, up
 * to EV_VICTIMS_MAX. A further victim must exceed its request, and its usage must be known. ERR_EXHAUSTED: no
 * memory.
 */
enum err_code ev_manager_choose(const struct ev_manager *m, const struct ev_check *look,
                                const struct ev_pod *pods, size_t n_pods, struct ev_choice *ret,
                                struct err *e) MUST_CHECK;
void ev_choice_done(struct ev_choice *c); /* frees its members */

/* The node's conditions; *ret_since_ms (may be NULL): the time of the last transition, 0 if there was none.
 */
bool ev_manager_pressure(const struct ev_manager *m, enum ev_condition c, uint64_t *ret_since_ms);
const struct ev_settings *ev_manager_settings(const struct ev_manager *m);
enum ev_layout ev_manager_layout(const struct ev_manager *m);

/* The amount that may still be used before the next threshold of this signal is crossed; 0: all are crossed.
 * UINT64_MAX: the signal has no threshold, or its value is unknown. */
uint64_t ev_manager_headroom(const struct ev_manager *m, enum ev_signal s, const struct ev_value *v);
#endif
