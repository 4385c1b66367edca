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
#endif
