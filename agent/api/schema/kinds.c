/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/schema/kinds.h"

#include <string.h>

#define KIND(kind_, name_, version_, plural_, singular_, namespaced_, schema_, ...)                          \
    [kind_] = { .name = (name_),                                                                             \
                .api_version = (version_),                                                                   \
                .plural = (plural_),                                                                         \
                .singular = (singular_),                                                                     \
                .namespaced = (namespaced_),                                                                 \
                .schema = &(schema_),                                                                        \
                .shorts = { __VA_ARGS__ } }

static const struct api_kind_info kinds[API_KINDS] = {
    KIND(API_KIND_POD, "Pod", "v1", "pods", "pod", true, api_schema_pod, "po"),
    KIND(API_KIND_CONFIG_MAP, "ConfigMap", "v1", "configmaps", "configmap", true, api_schema_config_map,
         "cm"),
    KIND(API_KIND_SECRET, "Secret", "v1", "secrets", "secret", true, api_schema_secret, NULL),
    KIND(API_KIND_PRIORITY_CLASS, "PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", "priorityclass",
         false, api_schema_priority_class, "pc"),
    KIND(API_KIND_RUNTIME_CLASS, "RuntimeClass", "node.k8s.io/v1", "runtimeclasses", "runtimeclass", false,
         api_schema_runtime_class, NULL),
    KIND(API_KIND_DEPLOYMENT, "Deployment", "apps/v1", "deployments", "deployment", true,
         api_schema_deployment, "deploy"),
    KIND(API_KIND_REPLICA_SET, "ReplicaSet", "apps/v1", "replicasets", "replicaset", true,
         api_schema_replica_set, "rs"),
    KIND(API_KIND_STATEFUL_SET, "StatefulSet", "apps/v1", "statefulsets", "statefulset", true,
         api_schema_stateful_set, "sts"),
    KIND(API_KIND_DAEMON_SET, "DaemonSet", "apps/v1", "daemonsets", "daemonset", true, api_schema_daemon_set,
         "ds"),
    KIND(API_KIND_JOB, "Job", "batch/v1", "jobs", "job", true, api_schema_job, NULL),
    KIND(API_KIND_CRON_JOB, "CronJob", "batch/v1", "cronjobs", "cronjob", true, api_schema_cron_job, "cj"),
    KIND(API_KIND_CLAIM, "PersistentVolumeClaim", "v1", "persistentvolumeclaims", "persistentvolumeclaim",
         true, api_schema_claim, "pvc"),
    KIND(API_KIND_SERVICE, "Service", "v1", "services", "service", true, api_schema_shown, "svc"),
    KIND(API_KIND_SERVICE_ACCOUNT, "ServiceAccount", "v1", "serviceaccounts", "serviceaccount", true,
         api_schema_service_account, "sa"),
    KIND(API_KIND_NAMESPACE, "Namespace", "v1", "namespaces", "namespace", false, api_schema_shown_cluster,
         "ns"),
    KIND(API_KIND_ENDPOINTS, "Endpoints", "v1", "endpoints", "endpoints", true, api_schema_endpoints, "ep"),
    KIND(API_KIND_PERSISTENT_VOLUME, "PersistentVolume", "v1", "persistentvolumes", "persistentvolume", false,
         api_schema_shown_cluster, "pv"),
    KIND(API_KIND_STORAGE_CLASS, "StorageClass", "storage.k8s.io/v1", "storageclasses", "storageclass", false,
         api_schema_storage_class, "sc"),
    KIND(API_KIND_INGRESS, "Ingress", "networking.k8s.io/v1", "ingresses", "ingress", true, api_schema_shown,
         "ing"),
    KIND(API_KIND_INGRESS_CLASS, "IngressClass", "networking.k8s.io/v1", "ingressclasses", "ingressclass",
         false, api_schema_shown_cluster, NULL),
    KIND(API_KIND_NETWORK_POLICY, "NetworkPolicy", "networking.k8s.io/v1", "networkpolicies", "networkpolicy",
         true, api_schema_shown, "netpol"),
    KIND(API_KIND_ROLE, "Role", "rbac.authorization.k8s.io/v1", "roles", "role", true, api_schema_role, NULL),
    KIND(API_KIND_ROLE_BINDING, "RoleBinding", "rbac.authorization.k8s.io/v1", "rolebindings", "rolebinding",
         true, api_schema_role_binding, NULL),
    KIND(API_KIND_CLUSTER_ROLE, "ClusterRole", "rbac.authorization.k8s.io/v1", "clusterroles", "clusterrole",
         false, api_schema_cluster_role, NULL),
    KIND(API_KIND_CLUSTER_ROLE_BINDING, "ClusterRoleBinding", "rbac.authorization.k8s.io/v1",
         "clusterrolebindings", "clusterrolebinding", false, api_schema_cluster_role_binding, NULL),
    KIND(API_KIND_DISRUPTION_BUDGET, "PodDisruptionBudget", "policy/v1", "poddisruptionbudgets",
         "poddisruptionbudget", true, api_schema_shown, "pdb"),
    KIND(API_KIND_AUTOSCALER, "HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers",
         "horizontalpodautoscaler", true, api_schema_shown, "hpa"),
    KIND(API_KIND_RESOURCE_QUOTA, "ResourceQuota", "v1", "resourcequotas", "resourcequota", true,
         api_schema_shown, "quota"),
    KIND(API_KIND_LIMIT_RANGE, "LimitRange", "v1", "limitranges", "limitrange", true, api_schema_shown,
         "limits"),
};

const struct api_kind_info *api_kind_info(enum api_kind kind)
{
    return &kinds[kind];
}

const char *api_kind_name(enum api_kind kind)
{
    return kind < API_KINDS ? kinds[kind].name : "Unknown";
}

bool api_kind_find(const char *name, size_t n, enum api_kind *ret)
{
    for (size_t i = 0; i < API_KINDS; i++)
        if (strlen(kinds[i].name) == n && strncmp(kinds[i].name, name, n) == 0) {
            *ret = (enum api_kind)i;
            return true;
        }
    return false;
}

bool api_kind_by_word(const char *word, enum api_kind *ret)
{
    for (size_t i = 0; i < API_KINDS; i++) {
        const struct api_kind_info *k = &kinds[i];

        if (strcmp(k->plural, word) == 0 || strcmp(k->singular, word) == 0 ||
            (k->shorts[0] != NULL && strcmp(k->shorts[0], word) == 0)) {
            *ret = (enum api_kind)i;
            return true;
        }
    }
    return false;
}
