/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds - the single table of kinds: their names and paths in Kubernetes, and their form in the store.
 * Constant; any thread. Other rooms keep tables keyed by the enum for further properties of a kind (columns,
 * verbs, patches).
 */
#ifndef AGENT_API_SCHEMA_KINDS_H
#define AGENT_API_SCHEMA_KINDS_H
#include <stdbool.h>
#include <stddef.h>

struct api_schema;

/* In the order in which discovery lists them: by group, in a group by plural. */
enum api_kind {
    API_KIND_CONFIG_MAP,
    API_KIND_ENDPOINTS,
    API_KIND_EVENT,
    API_KIND_LIMIT_RANGE,
    API_KIND_NAMESPACE,
    API_KIND_NODE,
    API_KIND_CLAIM,
    API_KIND_PERSISTENT_VOLUME,
    API_KIND_POD,
    API_KIND_RESOURCE_QUOTA,
    API_KIND_SECRET,
    API_KIND_SERVICE_ACCOUNT,
    API_KIND_SERVICE,
    API_KIND_CONTROLLER_REVISION,
    API_KIND_DAEMON_SET,
    API_KIND_DEPLOYMENT,
    API_KIND_REPLICA_SET,
    API_KIND_STATEFUL_SET,
    API_KIND_NEW_EVENT, /* of events.k8s.io */
    API_KIND_SELF_REVIEW,
    API_KIND_ACCESS_REVIEW,
    API_KIND_RULES_REVIEW,
    API_KIND_AUTOSCALER,
    API_KIND_CRON_JOB,
    API_KIND_JOB,
    API_KIND_INGRESS_CLASS,
    API_KIND_INGRESS,
    API_KIND_NETWORK_POLICY,
    API_KIND_DISRUPTION_BUDGET,
    API_KIND_CLUSTER_ROLE_BINDING,
    API_KIND_CLUSTER_ROLE,
    API_KIND_ROLE_BINDING,
    API_KIND_ROLE,
    API_KIND_CSI_DRIVER,
    API_KIND_STORAGE_CLASS,
    API_KIND_PRIORITY_CLASS,
    API_KIND_LEASE,
    API_KIND_RUNTIME_CLASS,
    API_KIND_NODE_METRICS,
    API_KIND_POD_METRICS,
    API_KINDS /* their number */
};

/* What the store holds of a kind, and so which kinds a manifest may have. */
enum api_held {
    API_HELD_NOT,
    API_HELD_PLAIN, /* decoded to a specific struct: Pods, ConfigMaps, Secrets and classes */
    /* struct api_generic: */
    API_HELD_WORKLOAD,
    API_HELD_CLAIM,
    API_HELD_WHOLE, /* its users read the JSON */
    API_HELD_SHOWN, /* kept and shown, and nothing else */
};

struct api_kind_row {
    enum api_kind id;
    const char *group, *version; /* group "": the core group */
    const char *api_version;     /* "apps/v1", "v1" */
    const char *kind, *plural, *singular;
    const char *short_name; /* NULL: none */
    bool namespaced;
    bool in_all; /* `kubectl get all` shows it */
    enum api_held held;
    const struct api_schema *schema;   /* of a manifest's fields; NULL: a manifest cannot have it */
    const struct api_kind_row *stored; /* the kind that its objects are stored as; NULL: itself */
};

/* Indexed by enum api_kind; terminated by a NULL kind. */
extern const struct api_kind_row api_kinds[API_KINDS + 1];

const char *api_kind_name(enum api_kind kind); /* "Pod", ... */
/* A kind of manifests by its name, "Pod" of `n` bytes; false: there is no such kind. */
bool api_kind_find(const char *name, size_t n, enum api_kind *ret);
/* Whether the `n` bytes of `word` are its plural, singular or short name. */
bool api_kind_is_word(const struct api_kind_row *kind, const char *word, size_t n);
/* NULL: there is no such resource. `group` "" for the core group. */
const struct api_kind_row *api_kind_of_resource(const char *group, const char *version, const char *plural);
/* By an object's apiVersion and kind, "apps/v1" and "Deployment"; NULL: the kind does not exist. */
const struct api_kind_row *api_kind_of_object(const char *api_version, const char *kind);

static inline bool api_kind_is_generic(enum api_kind kind)
{
    return api_kinds[kind].held >= API_HELD_WORKLOAD;
}

static inline bool api_kind_is_workload(enum api_kind kind)
{
    return api_kinds[kind].held == API_HELD_WORKLOAD;
}

static inline bool api_kind_is_only_shown(enum api_kind kind)
{
    return api_kinds[kind].held == API_HELD_SHOWN;
}
#endif
