/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/schema/kinds.h"

#include "agent/api/schema/schema.h"
#include "base/scope.h"

#include <string.h>

#define KIND(id_, kind_, plural_, singular_, ...)                                                            \
    [id_] = { .id = (id_), .kind = (kind_), .plural = (plural_), .singular = (singular_), __VA_ARGS__ }
#define CORE .group = "", .version = "v1", .api_version = "v1"
#define OF(group_, version_) .group = group_, .version = version_, .api_version = group_ "/" version_
#define SHORT(name_) .short_name = (name_)
#define NAMESPACED .namespaced = true
#define IN_ALL .in_all = true
#define HELD(held_, schema_) .held = API_HELD_##held_, .schema = &api_schema_##schema_

/* The order of groups is kube-apiserver's (by priority). */
const struct api_kind_row api_kinds[API_KINDS + 1] = {
    KIND(API_KIND_CONFIG_MAP, "ConfigMap", "configmaps", "configmap", CORE, SHORT("cm"), NAMESPACED,
         HELD(PLAIN, config_map)),
    KIND(API_KIND_ENDPOINTS, "Endpoints", "endpoints", "endpoints", CORE, SHORT("ep"), NAMESPACED,
         HELD(SHOWN, endpoints)),
    KIND(API_KIND_EVENT, "Event", "events", "event", CORE, SHORT("ev"), NAMESPACED),
    KIND(API_KIND_LIMIT_RANGE, "LimitRange", "limitranges", "limitrange", CORE, SHORT("limits"), NAMESPACED,
         HELD(SHOWN, shown)),
    KIND(API_KIND_NAMESPACE, "Namespace", "namespaces", "namespace", CORE, SHORT("ns"),
         HELD(SHOWN, shown_cluster)),
    KIND(API_KIND_NODE, "Node", "nodes", "node", CORE, SHORT("no")),
    KIND(API_KIND_CLAIM, "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", CORE,
         SHORT("pvc"), NAMESPACED, HELD(CLAIM, claim)),
    KIND(API_KIND_PERSISTENT_VOLUME, "PersistentVolume", "persistentvolumes", "persistentvolume", CORE,
         SHORT("pv"), HELD(CLAIM, persistent_volume)),
    KIND(API_KIND_POD, "Pod", "pods", "pod", CORE, SHORT("po"), NAMESPACED, IN_ALL, HELD(PLAIN, pod)),
    KIND(API_KIND_RESOURCE_QUOTA, "ResourceQuota", "resourcequotas", "resourcequota", CORE, SHORT("quota"),
         NAMESPACED, HELD(SHOWN, shown)),
    KIND(API_KIND_SECRET, "Secret", "secrets", "secret", CORE, NAMESPACED, HELD(PLAIN, secret)),
    KIND(API_KIND_SERVICE_ACCOUNT, "ServiceAccount", "serviceaccounts", "serviceaccount", CORE, SHORT("sa"),
         NAMESPACED, HELD(SHOWN, service_account)),
    KIND(API_KIND_SERVICE, "Service", "services", "service", CORE, SHORT("svc"), NAMESPACED, IN_ALL,
         HELD(SHOWN, shown)),
    KIND(API_KIND_CONTROLLER_REVISION, "ControllerRevision", "controllerrevisions", "controllerrevision",
         OF("apps", "v1"), NAMESPACED, HELD(WHOLE, controller_revision)),
    KIND(API_KIND_DAEMON_SET, "DaemonSet", "daemonsets", "daemonset", OF("apps", "v1"), SHORT("ds"),
         NAMESPACED, IN_ALL, HELD(WORKLOAD, daemon_set)),
    KIND(API_KIND_DEPLOYMENT, "Deployment", "deployments", "deployment", OF("apps", "v1"), SHORT("deploy"),
         NAMESPACED, IN_ALL, HELD(WORKLOAD, deployment)),
    KIND(API_KIND_REPLICA_SET, "ReplicaSet", "replicasets", "replicaset", OF("apps", "v1"), SHORT("rs"),
         NAMESPACED, IN_ALL, HELD(WORKLOAD, replica_set)),
    KIND(API_KIND_STATEFUL_SET, "StatefulSet", "statefulsets", "statefulset", OF("apps", "v1"), SHORT("sts"),
         NAMESPACED, IN_ALL, HELD(WORKLOAD, stateful_set)),
    KIND(API_KIND_NEW_EVENT, "Event", "events", "event", OF("events.k8s.io", "v1"), SHORT("ev"), NAMESPACED,
         .stored = &api_kinds[API_KIND_EVENT]),
    KIND(API_KIND_SELF_REVIEW, "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview",
         OF("authentication.k8s.io", "v1")),
    KIND(API_KIND_ACCESS_REVIEW, "SelfSubjectAccessReview", "selfsubjectaccessreviews",
         "selfsubjectaccessreview", OF("authorization.k8s.io", "v1")),
    KIND(API_KIND_RULES_REVIEW, "SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview",
         OF("authorization.k8s.io", "v1")),
    KIND(API_KIND_AUTOSCALER, "HorizontalPodAutoscaler", "horizontalpodautoscalers",
         "horizontalpodautoscaler", OF("autoscaling", "v2"), SHORT("hpa"), NAMESPACED, IN_ALL,
         HELD(SHOWN, shown)),
    KIND(API_KIND_CRON_JOB, "CronJob", "cronjobs", "cronjob", OF("batch", "v1"), SHORT("cj"), NAMESPACED,
         IN_ALL, HELD(WORKLOAD, cron_job)),
    KIND(API_KIND_JOB, "Job", "jobs", "job", OF("batch", "v1"), NAMESPACED, IN_ALL, HELD(WORKLOAD, job)),
    KIND(API_KIND_INGRESS_CLASS, "IngressClass", "ingressclasses", "ingressclass",
         OF("networking.k8s.io", "v1"), HELD(SHOWN, shown_cluster)),
    KIND(API_KIND_INGRESS, "Ingress", "ingresses", "ingress", OF("networking.k8s.io", "v1"), SHORT("ing"),
         NAMESPACED, HELD(SHOWN, shown)),
    KIND(API_KIND_NETWORK_POLICY, "NetworkPolicy", "networkpolicies", "networkpolicy",
         OF("networking.k8s.io", "v1"), SHORT("netpol"), NAMESPACED, HELD(SHOWN, shown)),
    KIND(API_KIND_DISRUPTION_BUDGET, "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget",
         OF("policy", "v1"), SHORT("pdb"), NAMESPACED, HELD(SHOWN, shown)),
    KIND(API_KIND_CLUSTER_ROLE_BINDING, "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding",
         OF("rbac.authorization.k8s.io", "v1"), HELD(SHOWN, cluster_role_binding)),
    KIND(API_KIND_CLUSTER_ROLE, "ClusterRole", "clusterroles", "clusterrole",
         OF("rbac.authorization.k8s.io", "v1"), HELD(SHOWN, cluster_role)),
    KIND(API_KIND_ROLE_BINDING, "RoleBinding", "rolebindings", "rolebinding",
         OF("rbac.authorization.k8s.io", "v1"), NAMESPACED, HELD(SHOWN, role_binding)),
    KIND(API_KIND_ROLE, "Role", "roles", "role", OF("rbac.authorization.k8s.io", "v1"), NAMESPACED,
         HELD(SHOWN, role)),
    KIND(API_KIND_CSI_DRIVER, "CSIDriver", "csidrivers", "csidriver", OF("storage.k8s.io", "v1"),
         HELD(WHOLE, csi_driver)),
    KIND(API_KIND_STORAGE_CLASS, "StorageClass", "storageclasses", "storageclass", OF("storage.k8s.io", "v1"),
         SHORT("sc"), HELD(SHOWN, storage_class)),
    KIND(API_KIND_PRIORITY_CLASS, "PriorityClass", "priorityclasses", "priorityclass",
         OF("scheduling.k8s.io", "v1"), SHORT("pc"), HELD(PLAIN, priority_class)),
    KIND(API_KIND_LEASE, "Lease", "leases", "lease", OF("coordination.k8s.io", "v1"), NAMESPACED),
    KIND(API_KIND_RUNTIME_CLASS, "RuntimeClass", "runtimeclasses", "runtimeclass", OF("node.k8s.io", "v1"),
         HELD(PLAIN, runtime_class)),
    KIND(API_KIND_NODE_METRICS, "NodeMetrics", "nodes", "node", OF("metrics.k8s.io", "v1beta1")),
    KIND(API_KIND_POD_METRICS, "PodMetrics", "pods", "pod", OF("metrics.k8s.io", "v1beta1"), NAMESPACED),
};

const char *api_kind_name(enum api_kind kind)
{
    return kind < API_KINDS ? api_kinds[kind].kind : "Unknown";
}

bool api_kind_find(const char *name, size_t n, enum api_kind *ret)
{
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++)
        if (k->held != API_HELD_NOT && strlen(k->kind) == n && strncmp(k->kind, name, n) == 0) {
            *ret = k->id;
            return true;
        }
    return false;
}

bool api_kind_is_word(const struct api_kind_row *kind, const char *word, size_t n)
{
    const char *const names[] = { kind->plural, kind->singular, kind->short_name };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i] != NULL && strlen(names[i]) == n && strncmp(names[i], word, n) == 0)
            return true;
    return false;
}

const struct api_kind_row *api_kind_of_resource(const char *group, const char *version, const char *plural)
{
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++)
        if (strcmp(k->plural, plural) == 0 && strcmp(k->group, group) == 0 &&
            strcmp(k->version, version) == 0)
            return k;
    return NULL;
}

const struct api_kind_row *api_kind_of_object(const char *api_version, const char *kind)
{
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++)
        if (strcmp(k->kind, kind) == 0 && strcmp(k->api_version, api_version) == 0)
            return k;
    return NULL;
}
