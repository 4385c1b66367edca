/* SPDX-License-Identifier: Apache-2.0 */
/* kinds - the kinds of objects that a manifest may have, with the names and paths that Kubernetes gives them.
 */
#ifndef AGENT_API_SCHEMA_KINDS_H
#define AGENT_API_SCHEMA_KINDS_H
#include "agent/api/schema/schema.h"

enum api_kind {
    API_KIND_POD,
    API_KIND_CONFIG_MAP,
    API_KIND_SECRET,
    API_KIND_PRIORITY_CLASS,
    API_KIND_RUNTIME_CLASS,
    /* struct api_generic: workloads, then claims, then kinds that are only kept and shown */
    API_KIND_DEPLOYMENT,
    API_KIND_REPLICA_SET,
    API_KIND_STATEFUL_SET,
    API_KIND_DAEMON_SET,
    API_KIND_JOB,
    API_KIND_CRON_JOB,
    API_KIND_CLAIM,
    API_KIND_SERVICE,
    API_KIND_SERVICE_ACCOUNT,
    API_KIND_NAMESPACE,
    API_KIND_ENDPOINTS,
    API_KIND_PERSISTENT_VOLUME,
    API_KIND_STORAGE_CLASS,
    API_KIND_INGRESS,
    API_KIND_INGRESS_CLASS,
    API_KIND_NETWORK_POLICY,
    API_KIND_ROLE,
    API_KIND_ROLE_BINDING,
    API_KIND_CLUSTER_ROLE,
    API_KIND_CLUSTER_ROLE_BINDING,
    API_KIND_DISRUPTION_BUDGET,
    API_KIND_AUTOSCALER,
    API_KIND_RESOURCE_QUOTA,
    API_KIND_LIMIT_RANGE,
    API_KINDS /* their number */
};

struct api_kind_info {
    const char *name;              /* "Deployment" */
    const char *api_version;       /* "apps/v1" */
    const char *plural, *singular; /* "deployments", "deployment" */
    const char *shorts[2];         /* "deploy"; NULL: no more */
    bool namespaced;
    const struct api_schema *schema;
};

const struct api_kind_info *api_kind_info(enum api_kind kind);
const char *api_kind_name(enum api_kind kind); /* "Pod", ... */
/* By its name, "Pod" of `n` bytes; false: no such kind. */
bool api_kind_find(const char *name, size_t n, enum api_kind *ret);
/* By a plural, singular or short name; false: none. */
bool api_kind_by_word(const char *word, enum api_kind *ret);

static inline bool api_kind_is_generic(enum api_kind kind)
{
    return kind >= API_KIND_DEPLOYMENT;
}

static inline bool api_kind_is_workload(enum api_kind kind)
{
    return kind >= API_KIND_DEPLOYMENT && kind <= API_KIND_CRON_JOB;
}

/* Kept and shown, and nothing else. */
static inline bool api_kind_is_only_shown(enum api_kind kind)
{
    return kind > API_KIND_CLAIM;
}
#endif
