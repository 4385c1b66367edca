/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of the other kinds: configuration, storage, services, classes, measures. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"
#include "base/strs.h"

#include <ctype.h>
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

/* ---- Node ---- */

static const struct api_column node_columns[] = {
    API_COLUMN_NAME,
    { "Status", "string", 0, "Whether the node is ready, and whether it takes pods." },
    { "Roles", "string", 0, "The roles that its labels name." },
    API_COLUMN_AGE,
    { "Version", "string", 0, "The version of its agent." },
    { "Internal-IP", "string", 1, "Its address inside the cluster." },
    { "External-IP", "string", 1, "Its address from outside." },
    { "OS-Image", "string", 1, "Its system, from /etc/os-release." },
    { "Kernel-Version", "string", 1, "The version of its kernel." },
    { "Container-Runtime", "string", 1, "What runs its containers." },
    { 0 },
};

static void node_status_cell(json_t **cells, const json_t *o)
{
    const json_t *ready = api_find(json_at(o, "status.conditions"), "type", "Ready");
    char text[64];

    snprintf(text, sizeof(text), "%s%s",
             ready == NULL                          ? "Unknown"
             : api_condition_is(o, "Ready", "True") ? "Ready"
                                                    : "NotReady",
             json_is_true(json_at(o, "spec.unschedulable")) ? ",SchedulingDisabled" : "");
    api_cell(cells, text);
}

static void roles_cell(json_t **cells, const json_t *o)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    struct strs roles = { 0 };
    buf_auto text = BUF_INIT(64 * 1024);
    bool complete = true;
    const char *key;
    json_t *value;

    json_object_foreach (json_at(o, "metadata.labels"), key, value) {
        if (str_starts(key, prefix) && key[strlen(prefix)] != '\0')
            complete &= strs_add_once(&roles, key + strlen(prefix));
        else if (strcmp(key, "kubernetes.io/role") == 0 && json_string_length(value) > 0)
            complete &= strs_add_once(&roles, json_string_value(value));
    }
    strs_sort(&roles);
    for (size_t i = 0; i < roles.n; i++)
        buf_addf(&text, "%s%s", i == 0 ? "" : ",", roles.v[i]);
    if (complete)
        api_cell_or(cells, text.p, "<none>");
    else
        api_append(cells, NULL);
    strs_done(&roles);
}

static void address_cell(json_t **cells, const json_t *o, const char *type)
{
    api_cell_or(cells, api_text_at(api_find(json_at(o, "status.addresses"), "type", type), "address"),
                "<none>");
}

static void node_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
    node_status_cell(cells, o);
    roles_cell(cells, o);
    api_cell_age(cells, o, now_ns);
    api_cell(cells, api_text_at(o, "status.nodeInfo.kubeletVersion"));
    address_cell(cells, o, "InternalIP");
    address_cell(cells, o, "ExternalIP");
    api_cell_or(cells, api_text_at(o, "status.nodeInfo.osImage"), "<unknown>");
    api_cell_or(cells, api_text_at(o, "status.nodeInfo.kernelVersion"), "<unknown>");
    api_cell_or(cells, api_text_at(o, "status.nodeInfo.containerRuntimeVersion"), "<unknown>");
}

/* ---- Event, of both groups, which name its members differently ---- */

static const struct api_column event_columns[] = {
    { "Last Seen", "string", 0, "The time since it happened last." },
    { "Type", "string", 0, "Normal or Warning." },
    { "Reason", "string", 0, "The reason in one word." },
    { "Object", "string", 0, "The object that it is about." },
    { "Subobject", "string", 1, "The part of the object, such as spec.containers{name}." },
    { "Source", "string", 1, "The component that reports it." },
    { "Message", "string", 0, "What happened, for people." },
    { "First Seen", "string", 1, "The time since it happened first." },
    { "Count", "string", 1, "How often it happened." },
    { "Name", "string", 1, "The name of the event." },
    { 0 },
};

/* The member under its name in the core group, or in events.k8s.io. */
static const char *event_text(const json_t *o, const char *core, const char *group)
{
    const char *text = api_text_at(o, core);

    return text[0] != '\0' ? text : api_text_at(o, group);
}

static void event_object_cell(json_t **cells, const json_t *o)
{
    char text[400];

    snprintf(text, sizeof(text), "%s/%s", event_text(o, "involvedObject.kind", "regarding.kind"),
             event_text(o, "involvedObject.name", "regarding.name"));
    for (char *c = text; *c != '\0' && *c != '/'; c++)
        *c = (char)tolower((unsigned char)*c);
    api_cell(cells, text);
}

static void event_source_cell(json_t **cells, const json_t *o)
{
    const char *component = event_text(o, "source.component", "deprecatedSource.component");
    const char *host = event_text(o, "source.host", "deprecatedSource.host");
    buf_auto text = BUF_INIT(64 * 1024);

    if (component[0] == '\0')
        component = event_text(o, "reportingComponent", "reportingController");
    if (host[0] == '\0')
        host = api_text_at(o, "reportingInstance");
    buf_addf(&text, "%s%s%s", component, host[0] == '\0' ? "" : ", ", host);
    api_cell(cells, text.p);
}

static void event_message_cell(json_t **cells, const json_t *o)
{
    const char *message = event_text(o, "message", "note");
    size_t n;

    while (isspace((unsigned char)*message))
        message++;
    for (n = strlen(message); n > 0 && isspace((unsigned char)message[n - 1]);)
        n--;
    api_append(cells, json_stringn(message, n));
}

static int64_t event_count(const json_t *o)
{
    const int64_t series = api_number_at(o, "series.count"), count = api_number_at(o, "count");
    const int64_t old = api_number_at(o, "deprecatedCount");

    return json_at(o, "series") != NULL ? series : count != 0 ? count : old != 0 ? old : 1;
}

static void event_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const char *first = event_text(o, "firstTimestamp", "deprecatedFirstTimestamp");
    const char *last = event_text(o, "lastTimestamp", "deprecatedLastTimestamp");

    if (first[0] == '\0')
        first = api_text_at(o, "eventTime");
    if (last[0] == '\0')
        last = first;
    if (json_at(o, "series") != NULL)
        last = api_text_at(o, "series.lastObservedTime");
    api_cell_since(cells, last, now_ns);
    api_cell(cells, api_text_at(o, "type"));
    api_cell(cells, api_text_at(o, "reason"));
    event_object_cell(cells, o);
    api_cell(cells, event_text(o, "involvedObject.fieldPath", "regarding.fieldPath"));
    event_source_cell(cells, o);
    event_message_cell(cells, o);
    api_cell_since(cells, first, now_ns);
    api_cell_number(cells, event_count(o));
    api_cell(cells, api_text_at(o, "metadata.name"));
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
    { "", "Event", event_columns, event_cells },
    { "events.k8s.io", "Event", event_columns, event_cells },
    { "", "Namespace", namespace_columns, namespace_cells },
    { "", "Node", node_columns, node_cells },
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
