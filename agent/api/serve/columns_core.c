/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of the other kinds: configuration, storage, services, classes, measures. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"

#include <stdio.h>
#include <string.h>

static void name_and_age(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell_age(cells, o, now_ns);
}

/* ---- ConfigMap, Secret, ServiceAccount, Namespace ---- */

static const struct api_column config_map_columns[] = {
    API_COLUMN_NAME,
    { "Data", "string", 0, "How many values it has." },
    API_COLUMN_AGE,
    { 0 },
};

static void config_map_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell_number(
        cells, (int64_t)(json_object_size(json_at(o, "data")) + json_object_size(json_at(o, "binaryData"))));
    api_cell_age(cells, o, now_ns);
}

static const struct api_column secret_columns[] = {
    API_COLUMN_NAME,
    { "Type", "string", 0, "The type, which says what the values are for." },
    { "Data", "string", 0, "How many values it has." },
    API_COLUMN_AGE,
    { 0 },
};

static void secret_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell(cells, api_text_at(o, "type"));
    api_cell_number(cells, (int64_t)json_object_size(json_at(o, "data")));
    api_cell_age(cells, o, now_ns);
}

static const struct api_column service_account_columns[] = {
    API_COLUMN_NAME,
    { "Secrets", "string", 0, "How many Secrets it names." },
    API_COLUMN_AGE,
    { 0 },
};

static void service_account_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell_number(cells, (int64_t)json_array_size(json_at(o, "secrets")));
    api_cell_age(cells, o, now_ns);
}

static const struct api_column namespace_columns[] = {
    API_COLUMN_NAME,
    { "Status", "string", 0, "Whether it is active or being removed." },
    API_COLUMN_AGE,
    { 0 },
};

static void namespace_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell(cells, api_text_at(o, "status.phase"));
    api_cell_age(cells, o, now_ns);
}

/* ---- storage ---- */

static const struct api_column claim_columns[] = {
    API_COLUMN_NAME,
    { "Status", "string", 0, "Whether the claim is bound to a volume." },
    { "Volume", "string", 0, "The volume that it is bound to." },
    { "Capacity", "string", 0, "The size of the volume." },
    { "Access Modes", "string", 0, "How the volume can be mounted." },
    { "StorageClass", "string", 0, "The storage class that the claim asks for." },
    { "VolumeAttributesClass", "string", 0, "The class of volume attributes that the claim asks for." },
    API_COLUMN_AGE,
    { "VolumeMode", "string", 1, "Whether it is a file system or a block device." },
    { 0 },
};

static void access_modes_cell(json_t **cells, const json_t *modes)
{
    static const char *const shorts[][2] = { { "ReadWriteOnce", "RWO" },
                                             { "ReadOnlyMany", "ROX" },
                                             { "ReadWriteMany", "RWX" },
                                             { "ReadWriteOncePod", "RWOP" } };
    buf_auto text = BUF_INIT(64);

    for (size_t i = 0; i < ARRAY_LEN(shorts); i++) {
        if (json_has(modes, shorts[i][0]))
            buf_addf(&text, "%s%s", text.n == 0 ? "" : ",", shorts[i][1]);
    }
    api_cell(cells, text.p);
}

static const char *phase_or_end(const json_t *o)
{
    return api_text_at(o, "metadata.deletionTimestamp")[0] != '\0' ? "Terminating"
                                                                   : api_text_at(o, "status.phase");
}

static void claim_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const char *volume = api_text_at(o, "spec.volumeName");
    const bool bound = volume[0] != '\0';

    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell(cells, phase_or_end(o));
    api_cell(cells, volume);
    api_cell(cells, bound ? api_text_at(o, "status.capacity.storage") : "");
    access_modes_cell(cells, bound ? json_at(o, "status.accessModes") : NULL);
    api_cell(cells, api_text_at(o, "spec.storageClassName"));
    api_cell_or(cells, api_text_at(o, "spec.volumeAttributesClassName"), "<unset>");
    api_cell_age(cells, o, now_ns);
    api_cell_or(cells, api_text_at(o, "spec.volumeMode"), "<unset>");
}

static const struct api_column volume_columns[] = {
    API_COLUMN_NAME,
    { "Capacity", "string", 0, "Its size." },
    { "Access Modes", "string", 0, "How it can be mounted." },
    { "Reclaim Policy", "string", 0, "What becomes of it when its claim is removed." },
    { "Status", "string", 0, "Whether it is bound to a claim." },
    { "Claim", "string", 0, "The claim that it is bound to." },
    { "StorageClass", "string", 0, "Its storage class." },
    { "VolumeAttributesClass", "string", 0, "Its class of volume attributes." },
    { "Reason", "string", 0, "Why it is in this state." },
    API_COLUMN_AGE,
    { "VolumeMode", "string", 1, "Whether it is a file system or a block device." },
    { 0 },
};

static void volume_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    char claim[400] = "";

    if (json_at(o, "spec.claimRef") != NULL)
        snprintf(claim, sizeof(claim), "%s/%s", api_text_at(o, "spec.claimRef.namespace"),
                 api_text_at(o, "spec.claimRef.name"));
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell(cells, api_text_at(o, "spec.capacity.storage"));
    access_modes_cell(cells, json_at(o, "spec.accessModes"));
    api_cell(cells, api_text_at(o, "spec.persistentVolumeReclaimPolicy"));
    api_cell(cells, phase_or_end(o));
    api_cell(cells, claim);
    api_cell(cells, api_text_at(o, "spec.storageClassName"));
    api_cell_or(cells, api_text_at(o, "spec.volumeAttributesClassName"), "<unset>");
    api_cell(cells, api_text_at(o, "status.reason"));
    api_cell_age(cells, o, now_ns);
    api_cell_or(cells, api_text_at(o, "spec.volumeMode"), "<unset>");
}

/* ---- Service ---- */

static const struct api_column service_columns[] = {
    API_COLUMN_NAME,
    { "Type", "string", 0, "How it would be reached." },
    { "Cluster-IP", "string", 0, "Its address inside a cluster." },
    { "External-IP", "string", 0, "Its addresses outside a cluster." },
    { "Port(s)", "string", 0, "Its ports." },
    API_COLUMN_AGE,
    { "Selector", "string", 1, "The labels of the pods behind it." },
    { 0 },
};

static void external_cell(json_t **cells, const json_t *o)
{
    const char *type = api_text_at(o, "spec.type");
    const json_t *ips = json_at(o, "spec.externalIPs"), *ingress = json_at(o, "status.loadBalancer.ingress"),
                 *v;
    buf_auto text = BUF_INIT(64 * 1024);
    const bool balanced = strcmp(type, "LoadBalancer") == 0;
    size_t i;

    if (strcmp(type, "ExternalName") == 0) {
        api_cell(cells, api_text_at(o, "spec.externalName"));
        return;
    }
    json_array_foreach (balanced ? ingress : NULL, i, v) {
        const char *ip = api_text_at(v, "ip");
        buf_addf(&text, "%s%s", text.n == 0 ? "" : ",", ip[0] != '\0' ? ip : api_text_at(v, "hostname"));
    }
    json_array_foreach (ips, i, v)
        buf_addf(&text, "%s%s", text.n == 0 ? "" : ",", json_is_string(v) ? json_string_value(v) : "");
    api_cell_or(cells, text.p, balanced ? "<pending>" : "<none>");
}

static void ports_cell(json_t **cells, const json_t *ports)
{
    buf_auto text = BUF_INIT(64 * 1024);
    const json_t *p;
    size_t i;

    json_array_foreach (ports, i, p) {
        const char *protocol = api_text_at(p, "protocol");
        buf_addf(&text, "%s%lld", i == 0 ? "" : ",", (long long)api_number_at(p, "port"));
        if (api_number_at(p, "nodePort") > 0)
            buf_addf(&text, ":%lld", (long long)api_number_at(p, "nodePort"));
        buf_addf(&text, "/%s", protocol[0] != '\0' ? protocol : "TCP");
    }
    api_cell_or(cells, text.p, "<none>");
}

static void service_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const char *first = json_string_value(json_array_get(json_at(o, "spec.clusterIPs"), 0));

    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell_or(cells, api_text_at(o, "spec.type"), "ClusterIP");
    api_cell_or(cells, first != NULL ? first : api_text_at(o, "spec.clusterIP"), "<none>");
    external_cell(cells, o);
    ports_cell(cells, json_at(o, "spec.ports"));
    api_cell_age(cells, o, now_ns);
    api_cell_pairs(cells, json_at(o, "spec.selector"));
}

/* ---- classes, leases, measures ---- */

static const struct api_column priority_class_columns[] = {
    API_COLUMN_NAME,
    { "Value", "integer", 0, "The priority of its pods." },
    { "Global-Default", "boolean", 0, "Whether pods without a class have this one." },
    API_COLUMN_AGE,
    { "PreemptionPolicy", "string", 0, "Whether its pods may take the place of others." },
    { 0 },
};

static void priority_class_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell_number(cells, api_number_at(o, "value"));
    api_append(cells, json_boolean(json_is_true(json_at(o, "globalDefault"))));
    api_cell_age(cells, o, now_ns);
    api_cell_or(cells, api_text_at(o, "preemptionPolicy"), "PreemptLowerPriority");
}

static const struct api_column runtime_class_columns[] = {
    API_COLUMN_NAME,
    { "Handler", "string", 0, "The runtime that runs its pods." },
    API_COLUMN_AGE,
    { 0 },
};

static void runtime_class_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell(cells, api_text_at(o, "handler"));
    api_cell_age(cells, o, now_ns);
}

static const struct api_column lease_columns[] = {
    API_COLUMN_NAME,
    { "Holder", "string", 0, "What holds it." },
    API_COLUMN_AGE,
    { 0 },
};

static void lease_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell(cells, api_text_at(o, "spec.holderIdentity"));
    api_cell_age(cells, o, now_ns);
}

static const struct api_column measure_columns[] = { API_COLUMN_NAME, API_COLUMN_AGE, { 0 } };

const struct api_columns api_columns_core[] = {
    { "", "ConfigMap", config_map_columns, config_map_cells },
    { "", "Namespace", namespace_columns, namespace_cells },
    { "", "PersistentVolumeClaim", claim_columns, claim_cells },
    { "", "PersistentVolume", volume_columns, volume_cells },
    { "", "Secret", secret_columns, secret_cells },
    { "", "ServiceAccount", service_account_columns, service_account_cells },
    { "", "Service", service_columns, service_cells },
    { "scheduling.k8s.io", "PriorityClass", priority_class_columns, priority_class_cells },
    { "coordination.k8s.io", "Lease", lease_columns, lease_cells },
    { "node.k8s.io", "RuntimeClass", runtime_class_columns, runtime_class_cells },
    { "metrics.k8s.io", "NodeMetrics", measure_columns, name_and_age },
    { "metrics.k8s.io", "PodMetrics", measure_columns, name_and_age },
    { 0 },
};
