/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission_fit - whether a pod's requests fit beside those of other pods: kubelet's PodFitsResources
 * (pkg/scheduler/framework/plugins/noderesources/fit.go as used by pkg/kubelet/lifecycle/predicate.go).
 *
 * Requests are compared with the node's allocatable resources. Other pods' requests count from their
 * admission until they are completely gone, and those of a critical pod from the moment others are ended for
 * it. Pure. Loop thread only.
 */
#ifndef AGENT_POD_LIMITS_ADMISSION_FIT_H
#define AGENT_POD_LIMITS_ADMISSION_FIT_H
#include "agent/pod/core/pod.h"

struct shortage {
    const char *resource;              /* "cpu", "memory", ...; borrowed from the manifest or static */
    int64_t requested, used, capacity; /* cpu in thousandths, others in their units */
};

/* The resources missing for a pod with the requests in `api`, in kubelet's order; returns their number.
 * `ending`: include pods that are terminating. */
#define ADMISSION_FIT_SHORTAGES_MAX 16
size_t admission_fit_shortages(const struct pod *p, const struct api_pod *api, bool ending,
                               struct shortage ret[ADMISSION_FIT_SHORTAGES_MAX]);

/* "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000" */
#define ADMISSION_FIT_TEXT_SIZE 512
void admission_fit_text(const struct node *n, const struct shortage *s, char ret[ADMISSION_FIT_TEXT_SIZE]);

/* The request of a whole pod, in the units of struct shortage; 1 of "pods". */
int64_t admission_fit_request(const struct api_pod *api, const char *resource);

/* Whether its requests count: it was admitted and is not gone, its devices are being allocated, or others
 * were ended for it. */
bool admission_fit_counts(const struct pod *p);

/* Number of terminating pods, except p. */
size_t admission_fit_ending(const struct pod *p);
#endif
