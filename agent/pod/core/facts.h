/* SPDX-License-Identifier: Apache-2.0 */
/* facts - predicates that only need a pod's structs. Loop thread only. */
#ifndef AGENT_POD_CORE_FACTS_H
#define AGENT_POD_CORE_FACTS_H
#include "agent/pod/core/pod.h"

#define POD_CRITICAL_PRIORITY 2000000000 /* kubelet's SystemCriticalPriority */

/* Files added together are read one after the other: within this time since a pod was first seen, and while
 * files are being read (but not endlessly: some folders never rest), a pod that misses a ConfigMap or Secret
 * just retries (woken immediately when it arrives), and nothing is reported. */
#define POD_NEW_NS (500 * INT64_C(1000000))
#define POD_NEW_MAX_NS (10 * INT64_C(1000000000))
bool pod_is_new(const struct pod *p);
bool pod_record_awaited(const struct pod *p);        /* what changed is not recorded yet, and can be */
struct boot_time pod_new_until(const struct pod *p); /* for a new one: when to check again */
/* Whether an optional ConfigMap or Secret may be treated as missing. Not while the pod is new and files are
 * still being read: among files added together the pod's may be the first, and its containers would start
 * without the others' data. */
enum err_code pod_may_lack(const struct pod *p, enum api_config_kind kind, const char *name,
                           struct err *e) MUST_CHECK;
/* Why a ConfigMap or Secret that the store does not have cannot be used: it is missing, or the apiserver has
 * not answered yet. ERR_OK: it is optional and may be treated as missing. */
enum err_code pod_lacks_config(const struct pod *p, enum api_config_kind kind, const char *name,
                               bool optional, struct err *e) MUST_CHECK;
enum api_restart_policy ctr_policy(const struct ctr *c); /* its own, or the pod's */
bool ctr_restart_wanted(const struct ctr *c);            /* after it ended, or if it never ran */
bool restart_all_possible(const struct pod *p); /* it has a rule with the action RestartAllContainers */
enum err_code volumes_host_path(const struct pod *p, const struct api_volume *v, char *ret, size_t size,
                                struct err *e) MUST_CHECK;
/* Whether a container mounts it: kubelet sets up no others. */
bool volumes_is_mounted(const struct pod *p, const char *volume); /* or its block device is given to one */
/* The block device of a claim, on the host. ERR_PRECONDITION: the volume is a file system. */
enum err_code volumes_device_path(const struct pod *p, const struct api_volume *v, char *ret, size_t size,
                                  bool *ret_read_only, struct err *e) MUST_CHECK;
bool ctr_alive(const struct ctr *c); /* an instance exists and has not ended */
const struct api_restart_rule *restart_matching_rule(const struct ctr *c); /* may be NULL */
bool userns_wanted(const struct pod *p);
bool preempt_is_critical(const struct pod *p);
bool pod_runs_again(const struct pod *p); /* after a shutdown of the machine that ended it */
/* It was refused, or ended for others' sake: it may be admitted again (admit/readmit.c). */
bool pod_may_return(const struct pod *p);
bool shutdown_now(const struct node *n); /* new pods are rejected */
#endif
