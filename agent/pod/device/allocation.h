/* SPDX-License-Identifier: Apache-2.0 */
/* allocation - shared by the files that allocate a pod's devices; valid for one turn. */
#ifndef AGENT_POD_DEVICE_ALLOCATION_H
#define AGENT_POD_DEVICE_ALLOCATION_H
#include "agent/pod/device/internal.h"

struct allocation { /* for one turn */
    struct pod *p;
    const struct device_want *v;
    size_t n;
    bool *asking;
    struct device_failure *failure;
};

static inline struct device_node *allocation_node(const struct allocation *a)
{
    return device_node(a->p->node);
}

static inline const struct ctr *allocation_ctr(const struct allocation *a, const struct device_want *w)
{
    return a->p->ctrs[w->ctr];
}

/* ---- align.c ---- */
/* NULL: no provider offers it, or it was forgotten. */
const struct dp_resource *allocation_resource(const struct allocation *a, const char *name);
/* The devices held by the pod that the container of *w may use again. */
enum err_code allocation_reusable(const struct allocation *a, const struct device_want *w, struct strs *ret,
                                  struct err *e) MUST_CHECK;
/* Makes the NUMA hint for p->ctrs[ctr], or for the whole pod, before its first want is allocated. */
enum err_code allocation_align(const struct allocation *a, size_t ctr, struct err *e) MUST_CHECK;
#endif
