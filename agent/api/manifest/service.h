/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service - shared by the two files with the rules of Services: ports and types, and addresses. All take the
 * spec as JSON, from the user or with an apiserver's defaults, and report at the path of the spec.
 */
#ifndef AGENT_API_MANIFEST_SERVICE_H
#define AGENT_API_MANIFEST_SERVICE_H
#include "agent/api/manifest/internal.h"

enum service_type {
    SERVICE_CLUSTER_IP,
    SERVICE_NODE_PORT,
    SERVICE_LOAD_BALANCER,
    SERVICE_EXTERNAL_NAME,
    SERVICE_OTHER
};

/* ---- validate_service.c ---- */
const char *service_text(const json_t *o, const char *key, const char *otherwise); /* also for "" */
enum service_type service_type_of(const json_t *spec);
bool service_is_headless(const json_t *spec);

/* ---- validate_address.c ---- */
void service_check_addresses(struct api_check *c, const json_t *spec); /* clusterIPs and families */
void service_check_external_ips(struct api_check *c, const json_t *spec);
void service_check_ranges(struct api_check *c, const json_t *spec); /* of a load balancer */
/* The annotation that was there before loadBalancerSourceRanges; at the metadata. */
void service_check_annotation(struct api_check *c, const struct api_meta *meta, const json_t *spec);
#endif
