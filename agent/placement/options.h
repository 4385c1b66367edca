/* SPDX-License-Identifier: Apache-2.0 */
/* options - kubelet's names for the policies of processors, memory and topology, and their options. Pure. */
#ifndef AGENT_PLACEMENT_OPTIONS_H
#define AGENT_PLACEMENT_OPTIONS_H
#include "agent/placement/hints.h"

struct pl_option { /* one entry of cpuManagerPolicyOptions or topologyManagerPolicyOptions */
    const char *name, *value;
};

struct pl_cpu_options {
    bool full_cores;      /* full-pcpus-only */
    bool distribute;      /* distribute-cpus-across-numa */
    bool align_by_socket; /* align-by-socket */
    bool spread;          /* distribute-cpus-across-cores */
    bool strict;          /* strict-cpu-reservation */
    bool uncore_first;    /* prefer-align-cpus-by-uncorecache */
};
/*
 * ERR_INVALID, with kubelet's text: an unknown option, a bad value, options that exclude each other. `alpha`
 * allows align-by-socket and distribute-cpus-across-cores (kubelet's feature gate
 * CPUManagerPolicyAlphaOptions).
 */
enum err_code pl_cpu_options_read(const struct pl_option *v, size_t n, bool alpha, struct pl_cpu_options *ret,
                                  struct err *e) MUST_CHECK;
/* ERR_INVALID: the options do not fit the machine or the topology manager's policy. */
enum err_code pl_cpu_options_check(const struct pl_cpu_options *o, const struct pl_machine *m,
                                   enum pl_policy topology, struct err *e) MUST_CHECK;

/* Whether `name` is a policy: "none", "best-effort", "restricted", "single-numa-node". */
bool pl_policy_from_name(const char *name, enum pl_policy *ret);
const char *pl_policy_name(enum pl_policy p);
/*
 * The settings of the topology manager. With the policy none, scope, options and machine are not checked, as
 * in kubelet. ERR_INVALID, with kubelet's text. ERR_RANGE: the machine has more nodes than
 * max-allowable-numa-nodes.
 */
enum err_code pl_topology_read(const char *policy, const char *scope, const struct pl_option *v, size_t n,
                               size_t n_nodes, bool distances_known, struct pl_topology *ret,
                               struct err *e) MUST_CHECK;
#endif
