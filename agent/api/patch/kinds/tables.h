/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables - the tables of kinds that the agent does not decode from manifests: structure, and how lists merge;
 * no ranges and no texts.  Their source is the OpenAPI document of Kubernetes 1.36 (x-kubernetes-*), and its
 * Go types for what an absent value is.  Private to the room.
 */
#ifndef AGENT_API_PATCH_KINDS_TABLES_H
#define AGENT_API_PATCH_KINDS_TABLES_H
#include "agent/api/schema/schema.h"

extern const struct api_schema patch_schema_deployment, patch_schema_replica_set, patch_schema_stateful_set,
    patch_schema_daemon_set;                                                                /* apps.c */
extern const struct api_schema patch_schema_job, patch_schema_cron_job, patch_schema_scale; /* batch.c */
extern const struct api_schema patch_schema_pod_status;                                     /* pod.c */
extern const struct api_schema patch_schema_node, patch_schema_namespace, patch_schema_event,
    patch_schema_service_account;                                          /* node.c */
extern const struct api_schema patch_schema_service, patch_schema_ingress; /* service.c */
extern const struct api_schema patch_schema_claim, patch_schema_claim_status,
    patch_schema_volume; /* storage.c */
#endif
