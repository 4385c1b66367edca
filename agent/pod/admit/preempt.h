/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt - ends pods so that a critical one can be admitted: kubelet's pkg/kubelet/preemption.
 *
 * Pods with a priority of 2000000000 or more are critical (system-cluster-critical, system-node-critical). In
 * kubelet static pods are critical whatever their priority, because they cannot be placed elsewhere; here all
 * pods come from manifests, and if all were critical, none would be.
 *
 * Victims are not critical, or have a lower priority. They are chosen so that as few Guaranteed pods as
 * possible are ended, then Burstable, then BestEffort; within a class, the pod closest to the missing amount.
 * Loop thread only.
 */
#ifndef AGENT_POD_ADMIT_PREEMPT_H
#define AGENT_POD_ADMIT_PREEMPT_H
#include "agent/pod/admit/admit.h"
#include "agent/pod/limits/admission_fit.h"

/* The pods to end so that *p gets the resources that it lacks: ret[] has room for all pods of the node. Pure.
 * ERR_EXHAUSTED: all of them would not be enough; the text is kubelet's. */
enum err_code preempt_choose(const struct pod *p, struct pod **ret, size_t *ret_n, struct err *e) MUST_CHECK;
#endif
