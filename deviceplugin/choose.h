/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose - chooses a container's devices, in kubelet's order (pkg/kubelet/cm/devicemanager/manager.go,
 * devicesToAllocate): devices of earlier init containers, then free healthy ones. With a NUMA hint, aligned
 * devices come first. Pure; ties are broken by dp_id_compare(), where kubelet's choice is random.
 *
 * There are two steps, because a plugin may be asked between them: dp_choose_begin() makes the choice, or
 * returns the question for GetPreferredAllocation; dp_choose_end() makes the choice with the answer. It
 * checks everything again, because holdings and devices may have changed since. Nothing is reserved: the
 * caller calls dp_holdings_put() on the same turn.
 */
#ifndef DEVICEPLUGIN_CHOOSE_H
#define DEVICEPLUGIN_CHOOSE_H
#include "deviceplugin/holdings.h"
#include "deviceplugin/inventory.h"

#include "base/arena.h"
#include "base/strs.h"

struct dp_wish {
    const char *pod_uid;
    const char *container; /* dp_hints_make(): NULL for the whole pod, without reusable ones */
    int64_t count;
    const char *const *reusable; /* from dp_reusable(); devices that another pod holds are ignored */
    size_t n_reusable;
    bool has_hint; /* whether `numa` is used */
    uint64_t numa; /* nodes to align to, as bits */
};

/* { 0 } is empty. */
struct dp_choice {
    /* Chosen, sorted by dp_id_compare(): for Allocate; and with their NUMA nodes: for dp_holdings_put(). */
    const char *const *ids;
    const struct dp_held *devices;
    size_t n;
    bool kept; /* the container holds them already, with an answer or without */
    /*
     * `ask`: nothing is chosen yet. The lists are for GetPreferredAllocation, with the wish's count as
     * allocation_size; then dp_choose_end() follows. They are sorted. Their ids are borrowed from inventory
     * and wish for this turn only, because there may be 65,536.
     */
    bool ask;
    const char *const *available; /* free and healthy devices, and `must` */
    const char *const *must; /* chosen in any case: reused ones, and all aligned ones if they are too few */
    size_t n_available, n_must;
    struct arena memory; /* private: of all this */
};

/*
 * `r` NULL: no provider has offered the resource, or it was forgotten. A resource that is only a number has
 * no devices to choose from. kubelet's errors and texts: ERR_PRECONDITION: pod "u" container "c" changed
 * request for resource "R" from a to b ERR_NOT_FOUND: cannot allocate unregistered device R ERR_UNAVAILABLE:
 * no healthy devices present; cannot allocate unhealthy devices R (also for a count of 0); previously
 * allocated devices are no longer healthy; cannot allocate unhealthy devices R ERR_EXHAUSTED: requested
 * number of devices unavailable for R. Requested: n, Available: m; n is without the reused ones. Also: out of
 * memory (err_is_shortage()).
 */
enum err_code dp_choose_begin(const struct dp_resource *r, const char *name, const struct dp_holdings *h,
                              const struct dp_wish *w, struct dp_choice *ret, struct err *e) MUST_CHECK;
/* `preferred`: the plugin's answer, NULL: no preference (kubelet rejects the pod when the call fails). Ids
 * that were not offered, repeated ids, and ids beyond the requested number are ignored. *c changes on success
 * only. */
enum err_code dp_choose_end(const struct dp_resource *r, const char *name, const struct dp_holdings *h,
                            const struct dp_wish *w, const char *const *preferred, size_t n,
                            struct dp_choice *c, struct err *e) MUST_CHECK;
void dp_choice_done(struct dp_choice *c); /* empties it */

/* Number of healthy devices of r without a holder: those that dp_choose_begin() counts as available, without
 * reuse. */
size_t dp_free_count(const struct dp_resource *r, const struct dp_holdings *h);

struct dp_predecessor {
    const char *container;
    bool reusable; /* an init container that ends, not one that is restarted (a sidecar) */
};
/* The devices held by its pod that a container may use again: those of init containers before it, except for
 * those that a sidecar or an app container before it has. `before` is in the order of admission: init
 * containers, then containers. *ret is sorted by dp_id_compare(); strs_done(). */
enum err_code dp_reusable(const struct dp_holdings *h, const char *pod_uid, const char *resource,
                          const struct dp_predecessor *before, size_t n, struct strs *ret,
                          struct err *e) MUST_CHECK;
#endif
