/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/kinds/kinds.h"

#include "agent/api/patch/kinds/tables.h"
#include "base/scope.h"

#include <string.h>

/* A Pod as the API shows it: the manifest's table has no status. */
static const struct api_row pod[] = {
    ROW("status", API_OBJECT, .nested = &patch_schema_pod_status),
    { 0 },
};
static const struct api_schema pod_schema = SCHEMA("Pod", pod, .base = &api_schema_pod);

/* Of the subresource, which has no separate path. */
static const struct api_kind_row scale = { .group = "autoscaling",
                                           .version = "v1",
                                           .api_version = "autoscaling/v1",
                                           .kind = "Scale",
                                           .plural = "scale",
                                           .namespaced = true };

#define KIND(row_, schema_, ...)                                                                             \
    {                                                                                                        \
        .row = (row_), .schema = (schema_), __VA_ARGS__                                                      \
    }
#define COUNTED .generation = true

/* Objects, and fields that Go's structs write even when nothing is set: a field below them is added to
 * something that is there already, which is not added with it (managedFields of a create). */
#define META "\"metadata\":{}"
#define TEMPLATE "\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}}"
#define ZERO(text) .zero = "{" META text "}"

static const struct api_patch_kind kinds[] = {
    KIND(&api_kinds[API_KIND_POD], &pod_schema, COUNTED,
         ZERO(",\"spec\":{\"containers\":null},\"status\":{}")),
    KIND(&api_kinds[API_KIND_CONFIG_MAP], &api_schema_config_map, ZERO("")),
    KIND(&api_kinds[API_KIND_SECRET], &api_schema_secret, ZERO("")),
    KIND(&api_kinds[API_KIND_SERVICE], &patch_schema_service,
         ZERO(",\"spec\":{},\"status\":{\"loadBalancer\":{}}")),
    KIND(&api_kinds[API_KIND_SERVICE_ACCOUNT], &patch_schema_service_account, ZERO("")),
    KIND(&api_kinds[API_KIND_EVENT], &patch_schema_event,
         ZERO(",\"involvedObject\":{},\"source\":{},\"firstTimestamp\":null,\"lastTimestamp\":null,"
              "\"eventTime\":null,\"reportingComponent\":\"\",\"reportingInstance\":\"\"")),
    KIND(&api_kinds[API_KIND_NAMESPACE], &patch_schema_namespace, ZERO(",\"spec\":{},\"status\":{}")),
    KIND(&api_kinds[API_KIND_NODE], &patch_schema_node,
         ZERO(",\"spec\":{},\"status\":{\"daemonEndpoints\":{\"kubeletEndpoint\":{}},\"nodeInfo\":{}}")),
    KIND(&api_kinds[API_KIND_CLAIM], &patch_schema_claim, ZERO(",\"spec\":{\"resources\":{}},\"status\":{}")),
    KIND(&api_kinds[API_KIND_PERSISTENT_VOLUME], &patch_schema_volume, ZERO(",\"spec\":{},\"status\":{}")),
    KIND(&api_kinds[API_KIND_DEPLOYMENT], &patch_schema_deployment, COUNTED,
         ZERO(",\"spec\":{\"selector\":null," TEMPLATE ",\"strategy\":{}},\"status\":{}")),
    KIND(&api_kinds[API_KIND_REPLICA_SET], &patch_schema_replica_set, COUNTED,
         ZERO(",\"spec\":{\"selector\":null," TEMPLATE "},\"status\":{\"replicas\":0}")),
    KIND(&api_kinds[API_KIND_STATEFUL_SET], &patch_schema_stateful_set, COUNTED,
         ZERO(",\"spec\":{\"selector\":null," TEMPLATE
              ",\"serviceName\":\"\",\"updateStrategy\":{}},\"status\":{\"replicas\":0}")),
    KIND(&api_kinds[API_KIND_DAEMON_SET], &patch_schema_daemon_set, COUNTED,
         ZERO(",\"spec\":{\"selector\":null," TEMPLATE ",\"updateStrategy\":{}},\"status\":{}")),
    KIND(&api_kinds[API_KIND_JOB], &patch_schema_job, COUNTED,
         ZERO(",\"spec\":{" TEMPLATE "},\"status\":{}")),
    KIND(&api_kinds[API_KIND_CRON_JOB], &patch_schema_cron_job, COUNTED,
         ZERO(",\"spec\":{\"schedule\":\"\",\"jobTemplate\":{\"metadata\":{},\"spec\":{" TEMPLATE
              "}}},\"status\":{}")),
    KIND(&api_kinds[API_KIND_INGRESS], &patch_schema_ingress, COUNTED,
         ZERO(",\"spec\":{},\"status\":{\"loadBalancer\":{}}")),
    KIND(&api_kinds[API_KIND_PRIORITY_CLASS], &api_schema_priority_class, COUNTED, ZERO(",\"value\":0")),
    KIND(&api_kinds[API_KIND_RUNTIME_CLASS], &api_schema_runtime_class, ZERO(",\"handler\":\"\"")),
    KIND(&scale, &patch_schema_scale, ZERO(",\"spec\":{},\"status\":{\"replicas\":0}")),
};

const struct api_patch_kind *api_patch_kind_find(const char *api_version, const char *kind)
{
    for (size_t i = 0; api_version != NULL && kind != NULL && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].row->kind, kind) == 0 && strcmp(kinds[i].row->api_version, api_version) == 0)
            return &kinds[i];
    return NULL;
}
