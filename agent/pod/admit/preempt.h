/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt - pods that are ended so that a critical one can be admitted: kubelet's pkg/kubelet/preemption.
 *
 * Critical is a pod with a priority of 2000000000 or more (system-cluster-critical, system-node-critical).
 * For kubelet static pods are critical, too, whatever their priority, as nobody could place them elsewhere;
 * here all pods come from manifests, and if all were critical, none would be.
 *
 * Those who may be ended: pods that are not critical, or of a lower priority.  Of them the fewest Guaranteed
 * ones that do if all of the others go, then the fewest Burstable ones, then BestEffort ones; within a class
 * who comes nearest to what is missing.  Loop thread only.
 */
#ifndef AGENT_POD_ADMIT_PREEMPT_H
#define AGENT_POD_ADMIT_PREEMPT_H
#include "agent/pod/limits/admission_fit.h"

/*
 * Who would have to go so that *p gets what it lacks: ret[] has room for all pods of the node.  Pure.
 * ERR_EXHAUSTED: all of them would not be enough; the text is kubelet's.
 */
enum err_code preempt_choose(const struct pod *p, struct pod **ret, size_t *ret_n, struct err *e) MUST_CHECK;

/*
 * Ends them, each with its own grace, and holds what they had for p.  The codes and texts of admit_pod():
 * ERR_UNAVAILABLE when p is to wait for them, else it is refused.
 */
enum err_code preempt_for(struct pod *p, char reason[64], struct err *e) MUST_CHECK;

/* Of a pod that was ended so. */
#define PREEMPT_REASON "Preempting"
#define PREEMPT_CONDITION "Pod was preempted by Kubelet to accommodate a critical pod."
#endif
