/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of nodes and events. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"
#include "base/strs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

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

const struct api_columns api_columns_node[] = {
    { "", "Node", node_columns, node_cells },
    { "", "Event", event_columns, event_cells },
    { "events.k8s.io", "Event", event_columns, event_cells },
    { 0 },
};
