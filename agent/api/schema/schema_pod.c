/* SPDX-License-Identifier: Apache-2.0 */
/* Table of PodSpec and the small types used only by it. */
#include "agent/api/schema/schema.h"

static const char scheduler[] = "for the scheduler; this pod is already on its node";

static const struct api_row local_ref[] = {
    ROW("name", API_STRING, SLOT(api_local_ref, name)),
    { 0 },
};
static const struct api_schema local_ref_schema =
    SCHEMA("LocalObjectReference", local_ref, .atomic = true, .size = sizeof(struct api_local_ref));

static const struct api_row host_alias[] = {
    ROW("ip", API_STRING, SLOT(api_host_alias, ip), .flags = API_REQUIRED, .format = API_FMT_IP),
    ROW("hostnames", API_STRINGS, SLOT(api_host_alias, hostnames), .format = API_FMT_SUBDOMAIN),
    { 0 },
};
static const struct api_schema host_alias_schema =
    SCHEMA("HostAlias", host_alias, .size = sizeof(struct api_host_alias));

static const struct api_row dns_option[] = {
    ROW("name", API_STRING, SLOT(api_dns_option, name), .flags = API_REQUIRED),
    ROW("value", API_STRING, SLOT(api_dns_option, value), .flags = API_KEEP_EMPTY),
    { 0 },
};
static const struct api_schema dns_option_schema =
    SCHEMA("PodDNSConfigOption", dns_option, .size = sizeof(struct api_dns_option));

static const struct api_row dns_config[] = {
    ROW("nameservers", API_STRINGS, SLOT(api_pod_spec, dns_nameservers), .format = API_FMT_IP),
    ROW("searches", API_STRINGS, SLOT(api_pod_spec, dns_searches), .format = API_FMT_SEARCH_DOMAIN),
    ROW("options", API_LIST, SLOTS(api_pod_spec, dns_options), .nested = &dns_option_schema),
    { 0 },
};
static const struct api_schema dns_config_schema = SCHEMA("PodDNSConfig", dns_config);

static const struct api_row readiness_gate[] = {
    ROW("conditionType", API_STRING, SLOT(api_readiness_gate, condition_type), .flags = API_REQUIRED,
        .format = API_FMT_LABEL_KEY),
    { 0 },
};
static const struct api_schema readiness_gate_schema =
    SCHEMA("PodReadinessGate", readiness_gate, .size = sizeof(struct api_readiness_gate));

static const struct api_value os_names[] = { { "linux", 0 }, { "windows", 1 }, { NULL, 0 } };
static const struct api_row os[] = {
    ROW("name", API_STRING, SLOT(api_pod_spec, os_name), .flags = API_REQUIRED, .values = os_names),
    { 0 },
};
static const struct api_schema os_schema = SCHEMA("PodOS", os);

static const struct api_row resource_claim[] = {
    ROW("name", API_STRING, .flags = API_REQUIRED, .format = API_FMT_LABEL),
    ROW("resourceClaimName", API_STRING, .flags = API_KEEP_EMPTY, .format = API_FMT_SUBDOMAIN),
    ROW("resourceClaimTemplateName", API_STRING, .flags = API_KEEP_EMPTY, .format = API_FMT_SUBDOMAIN),
    { 0 },
};
static const struct api_schema resource_claim_schema =
    SCHEMA("PodResourceClaim", resource_claim,
           .one_of = "one of resourceClaimName and "
                     "resourceClaimTemplateName is allowed, not both",
           .one_of_none = "resourceClaimName or "
                          "resourceClaimTemplateName is required",
           .one_of_first = "resourceClaimName");

const struct api_value api_values_restart_policy[] = { { "Always", API_RESTART_ALWAYS },
                                                       { "OnFailure", API_RESTART_ON_FAILURE },
                                                       { "Never", API_RESTART_NEVER },
                                                       { NULL, 0 } };
static const struct api_value dns_policies[] = {
    { "ClusterFirst", 0 }, { "ClusterFirstWithHostNet", 1 }, { "Default", 2 }, { "None", 3 }, { NULL, 0 }
};
static const struct api_value preemption_policies[] = { { "PreemptLowerPriority", 0 },
                                                        { "Never", 1 },
                                                        { NULL, 0 } };

static const struct api_row pod_spec[] = {
    ROW("containers", API_LIST, SLOTS(api_pod_spec, containers), .flags = API_REQUIRED,
        .nested = &api_schema_container, .merge_key = "name"),
    ROW("initContainers", API_LIST, SLOTS(api_pod_spec, init_containers), .nested = &api_schema_container,
        .merge_key = "name"),
    ROW("ephemeralContainers", API_LIST, SLOTS(api_pod_spec, ephemeral_containers), .flags = API_IN_CLUSTER,
        .nested = &api_schema_ephemeral_container, .merge_key = "name",
        REFUSED("ephemeral containers cannot be set when a pod is created; "
                "kubectl debug and coracle debug add them")),
    ROW("volumes", API_LIST, SLOTS(api_pod_spec, volumes), .nested = &api_schema_volume, .merge_key = "name",
        .flags = API_RETAIN_KEYS),
    ROW("restartPolicy", API_ENUM, SLOT(api_pod_spec, restart_policy), .values = api_values_restart_policy,
        .otherwise = "Always"),
    ROW("terminationGracePeriodSeconds", API_INT64, SLOT(api_pod_spec, termination_grace_seconds),
        .otherwise = "30"),
    ROW("activeDeadlineSeconds", API_INT64, SLOT(api_pod_spec, active_deadline_seconds),
        .has = AT(api_pod_spec, has_active_deadline), RANGE(1, INT32_MAX)),
    ROW("dnsPolicy", API_STRING, SLOT(api_pod_spec, dns_policy), .values = dns_policies,
        .otherwise = "ClusterFirst"),
    ROW("dnsConfig", API_OBJECT, .slot = HERE, .nested = &dns_config_schema),
    ROW("nodeSelector", API_STRING_MAP, SLOT(api_pod_spec, node_selector), .flags = API_ATOMIC),
    ROW("serviceAccountName", API_STRING, SLOT(api_pod_spec, service_account_name),
        .format = API_FMT_SUBDOMAIN,
        ACCEPTED("without an API server there are no accounts and no tokens; the name is shown")),
    ROW("serviceAccount", API_STRING, ACCEPTED("the old name of serviceAccountName")),
    ROW("automountServiceAccountToken", API_BOOL,
        ACCEPTED("without an API server there is no token to mount")),
    ROW("nodeName", API_STRING, SLOT(api_pod_spec, node_name), .format = API_FMT_SUBDOMAIN),
    ROW("hostNetwork", API_BOOL, SLOT(api_pod_spec, host_network), .flags = API_ZERO_ABSENT),
    ROW("hostPID", API_BOOL, SLOT(api_pod_spec, host_pid), .flags = API_ZERO_ABSENT),
    ROW("hostIPC", API_BOOL, SLOT(api_pod_spec, host_ipc), .flags = API_ZERO_ABSENT),
    ROW("hostUsers", API_BOOL, SLOT(api_pod_spec, host_users), .has = AT(api_pod_spec, has_host_users)),
    ROW("shareProcessNamespace", API_BOOL, SLOT(api_pod_spec, share_process_namespace)),
    ROW("securityContext", API_OBJECT, SLOT(api_pod_spec, security), .nested = &api_schema_pod_security,
        .otherwise = "{}"),
    ROW("imagePullSecrets", API_LIST, SLOTS(api_pod_spec, image_pull_secrets), .nested = &local_ref_schema,
        .merge_key = "name"),
    ROW("hostname", API_STRING, SLOT(api_pod_spec, hostname), .format = API_FMT_LABEL),
    ROW("subdomain", API_STRING, SLOT(api_pod_spec, subdomain), .format = API_FMT_LABEL),
    ROW("hostnameOverride", API_STRING, SLOT(api_pod_spec, hostname_override), .flags = API_KEEP_EMPTY,
        .format = API_FMT_SUBDOMAIN),
    ROW("setHostnameAsFQDN", API_BOOL, SLOT(api_pod_spec, hostname_as_fqdn)),
    ROW("hostAliases", API_LIST, SLOTS(api_pod_spec, host_aliases), .nested = &host_alias_schema,
        .merge_key = "ip"),
    ROW("affinity", API_OBJECT, .slot = HERE, .nested = &api_schema_affinity),
    ROW("schedulerName", API_STRING, .otherwise = "default-scheduler", ACCEPTED(scheduler)),
    ROW("tolerations", API_LIST, SLOTS(api_pod_spec, tolerations), .nested = &api_schema_toleration),
    ROW("topologySpreadConstraints", API_LIST, .nested = &api_schema_topology_spread,
        .merge_key = "topologyKey", .list_keys = "topologyKey,whenUnsatisfiable", ACCEPTED(scheduler)),
    ROW("priorityClassName", API_STRING, SLOT(api_pod_spec, priority_class_name),
        .format = API_FMT_SUBDOMAIN),
    ROW("priority", API_INT32, SLOT(api_pod_spec, priority), .has = AT(api_pod_spec, has_priority)),
    ROW("preemptionPolicy", API_STRING, .flags = API_KEEP_EMPTY, .values = preemption_policies,
        ACCEPTED(scheduler)),
    ROW("readinessGates", API_LIST, SLOTS(api_pod_spec, readiness_gates), .nested = &readiness_gate_schema),
    ROW("runtimeClassName", API_STRING, .flags = API_KEEP_EMPTY, .format = API_FMT_SUBDOMAIN,
        SLOT(api_pod_spec, runtime_class_name)),
    ROW("overhead", API_RESOURCES, SLOT(api_pod_spec, overhead)),
    ROW("enableServiceLinks", API_BOOL, SLOT(api_pod_spec, service_links), .otherwise = "true",
        ACTED("on a node of a cluster; others have no Services")),
    ROW("os", API_OBJECT, .slot = HERE, .nested = &os_schema),
    ROW("schedulingGates", API_LIST, .nested = &api_schema_scheduling_gate, .merge_key = "name",
        .has = AT(api_pod_spec, gated), ACTED("the pod waits until its manifest has none")),
    ROW("schedulingGroup", API_OBJECT, .nested = &api_schema_scheduling_group, ACCEPTED(scheduler)),
    ROW("resourceClaims", API_LIST, .nested = &resource_claim_schema, .merge_key = "name",
        .flags = API_RETAIN_KEYS, REFUSED("dynamic resource allocation needs a control plane and drivers")),
    ROW("resources", API_OBJECT, SLOT(api_pod_spec, resources), .has = AT(api_pod_spec, has_resources),
        .nested = &api_schema_resources),
    { 0 },
};
const struct api_schema api_schema_pod_spec = SCHEMA("PodSpec", pod_spec);
