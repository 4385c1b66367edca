/* SPDX-License-Identifier: Apache-2.0 */
/* admit - whether a pod may run here, and when a rejected one is retried. Loop thread only. */
#ifndef AGENT_POD_ADMIT_ADMIT_H
#define AGENT_POD_ADMIT_ADMIT_H
#include "agent/pod/core/pod.h"

extern const struct room admit_room;

/* Another pod may wait, or may have been rejected, for resources of one pod. */
void pods_wake_pending(struct node *n, const char *why);
/* ERR_OK: admitted. ERR_UNAVAILABLE: wait (a terminating pod holds the needed resources). Otherwise it is
 * rejected, with reason and message; ERR_EXHAUSTED: only for lack of resources, so preempt.h may help. */
enum err_code admit_pod(struct pod *p, char reason[64], struct err *e) MUST_CHECK;
/* The same for extended resources, which admit_pod() leaves out: their devices are allocated first. */
enum err_code admit_extended(struct pod *p, char reason[64], struct err *e) MUST_CHECK;
/* ERR_UNAVAILABLE: a pod of a workload waits until the node takes new pods; *e has a scheduler's words. */
enum err_code admit_schedule(const struct pod *p, struct err *e) MUST_CHECK;
bool readmit_waits(const struct pod *p); /* it waits for admission, perhaps for the first time */
/* The order of admission: higher priority, then age, then name. */
bool readmit_before(const struct pod *a, const struct pod *b);
/* Terminated: if it could be admitted now, it becomes its own successor. */
void readmit_step(struct pod *p);

/* ---- cpu and memory of a running pod are changed: resize.h ---- */
/* An edit that may be applied in place: returns the manifest to use, a new reference. If its resources do not
 * fit now, it is *api with the allocated ones. NULL when out of memory. */
struct api_pod *resize_take(struct pod *p, struct api_pod *api);

/* The desired state: p->api, or the pending one. */
const struct api_pod *resize_desired(const struct pod *p);
bool resize_waits(const struct pod *p); /* the desired resources cannot be had now */
void resize_forget(struct pod *p);      /* it has ended, or is freed */
/* The order of two pending resizes: one that requests no more, higher priority, Guaranteed, longer
 * waiting. */
bool resize_before(const struct pod *a, const struct pod *b);

/* Makes the pod's cgroup, no smaller than its containers' existing limits. */
enum err_code resize_pod_cgroup(struct pod *p, struct err *e) MUST_CHECK;
void resize_cgroup_gone(struct pod *p); /* it was removed */

/* For the status. */
bool resize_is_under_way(const struct pod *p);
void resize_explain(const struct pod *p, json_t *steps);
void resize_conditions(const struct pod *p, json_t *list);
/* A container's actual resources, where they differ from the allocated ones. */
void resize_actual(const struct ctr *c, json_t *resources);

/* ---- pods are ended for a critical one: preempt.h ---- */
/* Ends pods, each with its own grace period, and reserves their resources for p. Codes and texts as for
 * admit_pod(): ERR_UNAVAILABLE if p must wait for them, otherwise it is rejected. */
enum err_code preempt_for(struct pod *p, char reason[64], struct err *e) MUST_CHECK;
/* For a pod ended this way. */
#define PREEMPT_REASON "Preempting"
#define PREEMPT_CONDITION "Pod was preempted by Kubelet to accommodate a critical pod."

/* ---- huge pages that the node reserves: hugepages_watch.h ---- */
void hugepages_watch_begin(struct node *n); /* out of memory: logged, and there is none */
#endif
