/* SPDX-License-Identifier: Apache-2.0 */
/* facts - questions about a pod that its structs alone answer.  Loop thread only. */
#ifndef AGENT_POD_CORE_FACTS_H
#define AGENT_POD_CORE_FACTS_H
#include "agent/pod/core/pod.h"

#define POD_CRITICAL_PRIORITY 2000000000 /* kubelet's SystemCriticalPriority */

/*
 * Files that are dropped together are read one after the other: within this time of its first sight, and as
 * long as files are being read (but not for ever: some folders never rest), a pod that misses a ConfigMap or
 * Secret just tries again (woken at once when it comes) and nobody is told.
 */
#define POD_NEW_NS (500 * INT64_C(1000000))
#define POD_NEW_MAX_NS (10 * INT64_C(1000000000))
bool pod_is_new(const struct pod *p);
struct boot_time pod_new_until(const struct pod *p); /* of one that is new: when to look again */
/*
 * May an optional ConfigMap or Secret be taken as missing?  Not while the pod is new and files are still
 * being read: of files that are dropped together the pod's may be the first one to be ready, and its
 * containers would begin without what lies there for them.
 */
enum err_code pod_may_lack(const struct pod *p, enum api_config_kind kind, const char *name,
                           struct err *e) MUST_CHECK;
enum api_restart_policy ctr_policy(const struct ctr *c); /* its own, or the pod's */
bool ctr_restart_wanted(const struct ctr *c);            /* after it ended, or never ran */
bool restart_all_possible(const struct pod *p); /* a rule of it has the action RestartAllContainers */
enum err_code volumes_host_path(const struct pod *p, const struct api_volume *v, char *ret, size_t size,
                                struct err *e) MUST_CHECK;
/* Some container mounts it: kubelet sets up no others. */
bool volumes_is_mounted(const struct pod *p, const char *volume);
bool ctr_alive(const struct ctr *c); /* an instance exists that has not ended */
const struct api_restart_rule *restart_matching_rule(const struct ctr *c); /* NULL: none */
bool userns_wanted(const struct pod *p);
bool preempt_is_critical(const struct pod *p);
bool shutdown_now(const struct node *n); /* new pods are refused */
#endif
