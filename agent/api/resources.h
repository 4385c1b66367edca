/* SPDX-License-Identifier: Apache-2.0 */
/* resources - rules and sums of requests and limits. */
#ifndef AGENT_API_RESOURCES_H
#define AGENT_API_RESOURCES_H
#include "agent/api/check.h"
#include "agent/api/types.h"

struct api_resource_rule {
    const char *name; /* ends in '-': prefix; "": anything with a '/' */
    enum api_support support;
    const char *why;
};
extern const struct api_resource_rule api_resource_rules[]; /* terminated by a NULL name */
void api_validate_resources(struct api_check *c, const struct api_resources *r, bool pod_level);
void api_validate_pod_resources(struct api_check *c, const struct api_pod_spec *spec);
void api_validate_overhead(struct api_check *c, const char *field, const struct api_resource_list *l);
/* Effective requests of all containers for a resource, without pod level and overhead. */
bool api_sum_requests(const struct api_pod_spec *spec, const char *name, struct quantity *ret);
enum api_qos api_compute_qos(const struct api_pod_spec *spec);

/* The QoS class from amounts that are not in a struct api_pod_spec: api_qos_add() for each container (or once
 * for the pod, if it has pod-level resources), then api_qos_of(). Rule: pkg/apis/core/v1/helper/qos. */
struct api_qos_sum {
    struct quantity requests[2], limits[2]; /* cpu, memory; zero: not set */
    bool some_unlimited;
};
/* The amounts are those of cpu and memory; NULL or zero: not set. */
void api_qos_add(struct api_qos_sum *sum, const struct quantity *const requests[2],
                 const struct quantity *const limits[2]);
enum api_qos api_qos_of(const struct api_qos_sum *sum); /* of one that was { 0 } before the first addition */
#endif
