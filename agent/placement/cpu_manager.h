/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_manager - kubelet's static policy for processors (pkg/kubelet/cm/cpumanager/policy_static.go). Pure.
 *
 * A container of a Guaranteed pod that requests a whole number of processors gets that many for itself. All
 * others share what is left (pl_cpu_state.shared), with the reserved ones, which nobody gets alone.
 *
 * Init containers end before the next container begins, so later containers of the pod get their processors
 * again; a sidecar keeps its own. What may be used again is remembered for one pod: the one that allocated
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
    unsigned n; /* processors for itself; 0: it shares */
};

struct pl_cpu_manager {
    const struct pl_machine *m; /* borrowed */
    struct pl_cpu_options o;
    struct cpus reserved;
    struct cpus reserved_cores; /* with the other processors of their cores */
    struct pl_cpu_state state;
    char reuse_pod[PL_NAME_MAX + 1]; /* "": nothing may be used again */
    struct cpus reuse;
};

/*
 * *reserved empty: `n_reserved` processors are chosen as for a container. ERR_INVALID, with kubelet's text:
 * they cannot be reserved. The caller owns *ret: pl_cpu_manager_done().
 */
enum err_code pl_cpu_manager_init(struct pl_cpu_manager *ret, const struct pl_machine *m,
                                  const struct pl_cpu_options *o, unsigned n_reserved,
                                  const struct cpus *reserved, struct err *e) MUST_CHECK;
void pl_cpu_manager_done(struct pl_cpu_manager *c);
/* Takes the state of a file over, which is empty if there is none; *s is empty then. ERR_PRECONDITION, with
 * kubelet's text: it does not fit this machine, the reservation or itself, and nothing is changed. */
enum err_code pl_cpu_manager_start(struct pl_cpu_manager *c, struct pl_cpu_state *s,
                                   struct err *e) MUST_CHECK;

/* Processors that a container may get for itself: free, and not reserved. */
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
 * Gives the container its processors, those on `nodes` first (0: no alignment). A container that has some
 * already keeps them. With kubelet's text: ERR_INVALID, an "SMTAlignmentError"; ERR_EXHAUSTED, too few are
 * free.
 */
enum err_code pl_cpu_allocate(struct pl_cpu_manager *c, const struct pl_cpu_want *w, uint64_t nodes,
                              struct err *e) MUST_CHECK;
/* Its processors are shared again, except those that other containers of the pod have. */
void pl_cpu_release(struct pl_cpu_manager *c, const char *pod, const char *container);
#endif
