/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose - which devices a container gets, in kubelet's order (pkg/kubelet/cm/devicemanager/manager.go,
 * devicesToAllocate). Pure; ties are broken by id, in natural order (dev-2 before dev-10), where kubelet's
 * are random.
 *
 * Two steps, because a plugin may be asked between them: dp_choose_begin() says what is taken for certain,
 * and what to ask GetPreferredAllocation, if anything; dp_choose_end() takes the answer.
 */
#ifndef DEVICEPLUGIN_CHOOSE_H
#define DEVICEPLUGIN_CHOOSE_H
#include "deviceplugin/holdings.h"
#include "deviceplugin/inventory.h"

struct dp_wish {
    const char *pod_uid, *container;
    int64_t count;
    const char *const *reusable; /* ids held by earlier init containers of this pod that it may have again */
    size_t n_reusable;
    bool has_hint;
    uint64_t numa; /* nodes to align to, as bits */
};

struct dp_choice {
    const char **ids; /* chosen; sorted */
    size_t n;
    /* The question to the plugin, if `ask`: then dp_choose_end() follows. */
    bool ask;
    const char **available, **must;
    size_t n_available, n_must;
    void *memory; /* private: dp_choice_done() */
};

/*
 * kubelet's errors and texts: ERR_NOT_FOUND "cannot allocate unregistered device R", ERR_UNAVAILABLE "no
 * healthy devices present; cannot allocate unhealthy devices R", ERR_EXHAUSTED "requested number of devices
 * unavailable for R. Requested: n, Available: m".
 */
enum err_code dp_choose_begin(const struct dp_resource *r, const char *name, const struct dp_holdings *h,
                              const struct dp_wish *w, struct dp_choice *ret, struct err *e) MUST_CHECK;
/* `preferred`: the plugin's answer; NULL: it failed, which counts as no preference. Ids that were not
 * offered are ignored. */
enum err_code dp_choose_end(const struct dp_resource *r, const struct dp_holdings *h, const struct dp_wish *w,
                            struct dp_choice *c, const char *const *preferred, size_t n,
                            struct err *e) MUST_CHECK;
void dp_choice_done(struct dp_choice *c);
#endif
