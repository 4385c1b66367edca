/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/kinds.h"

#include "agent/api/patch/tables.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

/* A Pod as the API shows it: the manifest's table has no status. */
static const struct api_row pod[] = {
    ROW("status", API_OBJECT, .nested = &patch_schema_pod_status),
    { 0 },
};
static const struct api_schema pod_schema = SCHEMA("Pod", pod, .base = &api_schema_pod);

#define KIND(group_, version_, kind_, plural_, schema_, ...)                                                 \
    {                                                                                                        \
        .group = (group_), .version = (version_), .kind = (kind_), .plural = (plural_), .schema = (schema_), \
        __VA_ARGS__                                                                                          \
    }
#define NAMESPACED .namespaced = true
#define COUNTED .generation = true

/* Objects, and fields that Go's structs write even when nothing is set: a field below them is added to
 * something that is there already, which is not added with it (managedFields of a create). */
#define META "\"metadata\":{}"
#define TEMPLATE "\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}}"
#define ZERO(text) .zero = "{" META text "}"

static const struct api_patch_kind kinds[] = {
    KIND("", "v1", "Pod", "pods", &pod_schema, NAMESPACED, COUNTED,
         ZERO(",\"spec\":{\"containers\":null},\"status\":{}")),
    KIND("", "v1", "ConfigMap", "configmaps", &api_schema_config_map, NAMESPACED, ZERO("")),
    KIND("", "v1", "Secret", "secrets", &api_schema_secret, NAMESPACED, ZERO("")),
    KIND("", "v1", "Service", "services", &patch_schema_service, NAMESPACED,
         ZERO(",\"spec\":{},\"status\":{\"loadBalancer\":{}}")),
    KIND("", "v1", "ServiceAccount", "serviceaccounts", &patch_schema_service_account, NAMESPACED, ZERO("")),
    KIND("", "v1", "Event", "events", &patch_schema_event, NAMESPACED,
         ZERO(",\"involvedObject\":{},\"source\":{},\"firstTimestamp\":null,\"lastTimestamp\":null,"
              "\"eventTime\":null,\"reportingComponent\":\"\",\"reportingInstance\":\"\"")),
    KIND("", "v1", "Namespace", "namespaces", &patch_schema_namespace, ZERO(",\"spec\":{},\"status\":{}")),
    KIND("", "v1", "Node", "nodes", &patch_schema_node,
         ZERO(",\"spec\":{},\"status\":{\"daemonEndpoints\":{\"kubeletEndpoint\":{}},\"nodeInfo\":{}}")),
    KIND("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", &patch_schema_claim, NAMESPACED,
         ZERO(",\"spec\":{\"resources\":{}},\"status\":{}")),
    KIND("", "v1", "PersistentVolume", "persistentvolumes", &patch_schema_volume,
         ZERO(",\"spec\":{},\"status\":{}")),
    KIND("apps", "v1", "Deployment", "deployments", &patch_schema_deployment, NAMESPACED, COUNTED,
         ZERO(",\"spec\":{\"selector\":null," TEMPLATE ",\"strategy\":{}},\"status\":{}")),
    KIND("apps", "v1", "ReplicaSet", "replicasets", &patch_schema_replica_set, NAMESPACED, COUNTED,
         ZERO(",\"spec\":{\"selector\":null," TEMPLATE "},\"status\":{\"replicas\":0}")),
    KIND("apps", "v1", "StatefulSet", "statefulsets", &patch_schema_stateful_set, NAMESPACED, COUNTED,
         ZERO(",\"spec\":{\"selector\":null," TEMPLATE
              ",\"serviceName\":\"\",\"updateStrategy\":{}},\"status\":{\"replicas\":0}")),
    KIND("apps", "v1", "DaemonSet", "daemonsets", &patch_schema_daemon_set, NAMESPACED, COUNTED,
         ZERO(",\"spec\":{\"selector\":null," TEMPLATE ",\"updateStrategy\":{}},\"status\":{}")),
    KIND("batch", "v1", "Job", "jobs", &patch_schema_job, NAMESPACED, COUNTED,
         ZERO(",\"spec\":{" TEMPLATE "},\"status\":{}")),
    KIND("batch", "v1", "CronJob", "cronjobs", &patch_schema_cron_job, NAMESPACED, COUNTED,
         ZERO(",\"spec\":{\"schedule\":\"\",\"jobTemplate\":{\"metadata\":{},\"spec\":{" TEMPLATE
              "}}},\"status\":{}")),
    KIND("networking.k8s.io", "v1", "Ingress", "ingresses", &patch_schema_ingress, NAMESPACED, COUNTED,
         ZERO(",\"spec\":{},\"status\":{\"loadBalancer\":{}}")),
    KIND("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &api_schema_priority_class, COUNTED,
         ZERO(",\"value\":0")),
    KIND("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", &api_schema_runtime_class,
         ZERO(",\"handler\":\"\"")),
    KIND("autoscaling", "v1", "Scale", "scale", &patch_schema_scale, NAMESPACED,
         ZERO(",\"spec\":{},\"status\":{\"replicas\":0}")),
};

const struct api_patch_kind *api_patch_kind_find(const char *api_version, const char *kind)
{
    char text[100];

    for (size_t i = 0; api_version != NULL && kind != NULL && i < ARRAY_LEN(kinds); i++) {
        snprintf(text, sizeof(text), "%s%s%s", kinds[i].group, kinds[i].group[0] != '\0' ? "/" : "",
                 kinds[i].version);
        if (strcmp(kinds[i].kind, kind) == 0 && strcmp(text, api_version) == 0)
            return &kinds[i];
    }
    return NULL;
}

const struct api_patch_kind *api_patch_kind_of_path(const char *group, const char *version,
                                                    const char *plural)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].group, group) == 0 && strcmp(kinds[i].version, version) == 0 &&
            strcmp(kinds[i].plural, plural) == 0)
            return &kinds[i];
    return NULL;
}
