/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_manager - kubelet's static policy for processors (pkg/kubelet/cm/cpumanager/policy_static.go). Pure.
 *
 * A container of a Guaranteed pod that requests a whole number of processors gets that many exclusively. All
 * other containers share the remaining processors (pl_cpu_state.shared), including the reserved ones, which
 * are never assigned exclusively.
 *
 * Init containers end before the next container begins, so later containers of the pod reuse their
 * processors; a sidecar keeps its own. Reusable processors are remembered only for the pod that allocated
 * last. Allocate the containers of a pod in their order.
 */
#ifndef AGENT_PLACEMENT_CPU_MANAGER_H
#define AGENT_PLACEMENT_CPU_MANAGER_H
#include "agent/placement/cpu_state.h"
#include "agent/placement/options.h"

enum pl_kind { PL_REGULAR, PL_INIT, PL_SIDECAR };

struct pl_cpu_want { /* what one container requests */
    const char *pod, *container;
    enum pl_kind kind;
    unsigned n; /* number of exclusive processors; 0: shared */
};

struct pl_cpu_manager {
    const struct pl_machine *m; /* borrowed */
    struct pl_cpu_options o;
    struct cpus reserved;
    struct cpus reserved_cores; /* with the other processors of their cores */
    struct pl_cpu_state state;
    char reuse_pod[PL_NAME_MAX + 1]; /* "": nothing is reusable */
    struct cpus reuse;
};

/*
 * *reserved empty: `n_reserved` processors are chosen in the same way as for a container. ERR_INVALID, with
 * kubelet's text: they cannot be reserved. The caller owns *ret: pl_cpu_manager_done().
 */
enum err_code pl_cpu_manager_init(struct pl_cpu_manager *ret, const struct pl_machine *m,
                                  const struct pl_cpu_options *o, unsigned n_reserved,
                                  const struct cpus *reserved, struct err *e) MUST_CHECK;
void pl_cpu_manager_done(struct pl_cpu_manager *c);
/* Takes ownership of the state read from a file (empty if there is none) and leaves *s empty.
 * ERR_PRECONDITION, with kubelet's text: the state contradicts this machine, the reservation or itself, and
 * nothing is changed. */
enum err_code pl_cpu_manager_start(struct pl_cpu_manager *c, struct pl_cpu_state *s,
                                   struct err *e) MUST_CHECK;

/* Processors that can be assigned exclusively: free, and not reserved. */
struct cpus pl_cpu_available(const struct pl_cpu_manager *c);
/* Adds nothing if the container shares; otherwise *ret has its hints. */
enum err_code pl_cpu_hints(const struct pl_cpu_manager *c, const struct pl_cpu_want *w, struct pl_hints *ret,
                           struct err *e) MUST_CHECK;
/* The same for a whole pod: its containers in order, n of them. */
enum err_code pl_cpu_pod_hints(const struct pl_cpu_manager *c, const struct pl_cpu_want *v, size_t n,
                               struct pl_hints *ret, struct err *e) MUST_CHECK;
/* The most processors that the pod has at any time. */
unsigned pl_cpu_pod_sum(const struct pl_cpu_want *v, size_t n);
/* The hints of a request; `reusable` processors are in each set. */
enum err_code pl_cpu_hints_make(const struct pl_machine *m, bool align_by_socket,
                                const struct cpus *available, const struct cpus *reusable, unsigned request,
                                struct pl_hints *ret, struct err *e) MUST_CHECK;

/*
 * Allocates the container's processors, preferably on `nodes` (0: no alignment). A container that already has
 * processors keeps them. With kubelet's text: ERR_INVALID, an "SMTAlignmentError"; ERR_EXHAUSTED, too few are
 * free.
 */
enum err_code pl_cpu_allocate(struct pl_cpu_manager *c, const struct pl_cpu_want *w, uint64_t nodes,
                              struct err *e) MUST_CHECK;
/* Returns the container's processors to the shared set, except processors of other containers of the pod. */
void pl_cpu_release(struct pl_cpu_manager *c, const char *pod, const char *container);
#endif
