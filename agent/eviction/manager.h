/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manager - decides, from what is observed, which conditions the node has, whether something must be
 * reclaimed, and which pods go: kubelet's pkg/kubelet/eviction/eviction_manager.go, without its fixed rounds.
 * Pure: the caller brings observations and the time, and carries decisions out.
 *
 * One look:
 *   1. ev_manager_look() with fresh values updates thresholds and conditions. EV_DO_NOTHING ends the look.
 *   2. EV_DO_RECLAIM: the node's own reserves go first (ended containers, unused images). The caller
 *      reclaims, observes again and calls ev_manager_reclaimed().
 *   3. EV_DO_EVICT: the caller brings all pods, ev_manager_choose() ranks them and names victims (choice.c).
 *      If nothing can be done about this crossing, or enough is ending already, ev_look_next() has the next
 *      one: a disk may be full while memory has nobody to evict.
 *
 * Soft and hard thresholds, grace periods, minimum reclaim and the transition period follow kubelet. A
 * condition is set at once, soft thresholds included. Memory comes before all others, hard before soft.
 * Signals without a value keep what was seen of them, and nothing is done about them.
 * Times are clock_boot_ms() of the caller. Any thread, one at a time.
 */
#ifndef AGENT_EVICTION_MANAGER_H
#define AGENT_EVICTION_MANAGER_H
#include "agent/eviction/message.h"

/* kubelet's interval. While a threshold is met, the next look is due after it at the latest. */
#define EV_ROUND_MS 10000
/* Two values of a signal within this time show how fast it is used up. After a hard threshold is met without
 * such a pair, the next look is due after EV_PROBE_MS. */
#define EV_RATE_MAX_MS 1000
#define EV_RATE_MIN_MS 5
#define EV_PROBE_MS 20
/* kubelet's immediateEvictionGracePeriodSeconds. An urgent crossing has 0 instead. */
#define EV_HARD_GRACE_S 1
/* A pod that was killed releases what it used within this time, kubelet's podCleanupTimeout; later it is not
 * waited for. */
#define EV_RELEASE_MS 30000
#define EV_VICTIMS_MAX 8 /* of one choice */

struct ev_manager;

enum ev_do { EV_DO_NOTHING, EV_DO_RECLAIM, EV_DO_EVICT };

struct ev_look {
    enum ev_do todo;
    struct ev_crossing crossing; /* what it is done for; not with EV_DO_NOTHING */
    unsigned reclaim;            /* EV_DO_RECLAIM: what, bits by enum ev_reclaim */
    uint64_t now_ms;
    /* When to look again although nothing happens: a grace or transition period ends, or something is
     * crossed. 0: never. */
    uint64_t again_ms;
    unsigned changed; /* conditions that changed, bits by enum ev_condition */
    /* For ev_look_next(). */
    struct ev_crossing all[EV_THRESHOLDS_MAX];
    size_t n_all, at;
    unsigned reclaimed;
    enum ev_layout layout;
};

struct ev_choice {
    const struct ev_pod **ranked; /* all candidates in order, malloc'ed array of borrowed pods */
    size_t n_ranked;
    size_t *victims;  /* indices into ranked, malloc'ed */
    size_t n_victims; /* 0: `enough`, or nobody can be evicted */
    bool enough;      /* what pods that end already release is expected to be enough */
    /* For each victim the smaller of this and its own; -1: its own. A victim that is ending has less time
     * from now on. */
    int64_t grace_s;
};

/* `s` is completed (ev_settings_complete()) and copied. NULL: no memory. */
struct ev_manager *ev_manager_new(const struct ev_settings *s, enum ev_layout layout);
void ev_manager_free(struct ev_manager *m); /* NULL is fine */
/* New settings or layout: what was seen of thresholds that are the same stays. */
void ev_manager_change(struct ev_manager *m, const struct ev_settings *s, enum ev_layout layout);

void ev_manager_look(struct ev_manager *m, const struct ev_observation *o, uint64_t now_ms,
                     struct ev_look *ret);
/* After EV_DO_RECLAIM, with `what` its bits, and values observed afterwards: EV_DO_NOTHING if that was
 * enough. */
void ev_manager_reclaimed(struct ev_manager *m, unsigned what, const struct ev_observation *o,
                          uint64_t now_ms, struct ev_look *ret);
/* The next crossing of the same look; EV_DO_NOTHING: there is none. */
void ev_look_next(struct ev_look *look);
/* Before EV_DO_EVICT, with values that were read after those of the pods; signals without a value keep
 * theirs. Otherwise, what a pod released between both would be missing from both. Crossings that are over are
 * left out. */
void ev_look_renew(struct ev_look *look, const struct ev_observation *o);

/*
 * Whom to evict for look->crossing. One pod, the first in order that is not critical. More only if its usage,
 * and what ending pods release, cannot be enough: then as many as are expected to be, up to EV_VICTIMS_MAX.
 * Beside others no pod goes that is within its request, and none whose usage is not known. ERR_EXHAUSTED: no
 * memory.
 */
enum err_code ev_manager_choose(const struct ev_manager *m, const struct ev_look *look,
                                const struct ev_pod *pods, size_t n_pods, struct ev_choice *ret,
                                struct err *e) MUST_CHECK;
void ev_choice_done(struct ev_choice *c); /* frees what it has */

/* The node's conditions; *ret_since_ms (may be NULL): of the last transition, 0 if there was none. */
bool ev_manager_pressure(const struct ev_manager *m, enum ev_condition c, uint64_t *ret_since_ms);
const struct ev_settings *ev_manager_settings(const struct ev_manager *m);
enum ev_layout ev_manager_layout(const struct ev_manager *m);

/* How much may still be used until the next threshold of this signal is crossed that is not yet; 0: all are.
 * UINT64_MAX: it has none, or the value is not known. */
uint64_t ev_manager_headroom(const struct ev_manager *m, enum ev_signal s, const struct ev_value *v);
#endif
