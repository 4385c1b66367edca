/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of the kinds that a node only keeps and shows: networking, policy, rights, classes of storage. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 3 }; /* hosts or addresses; of more, the number is shown */

static void name_cell(json_t **cells, const json_t *o)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
}

/* ---- Ingress, IngressClass, NetworkPolicy, Endpoints ---- */

static const struct api_column ingress_columns[] = {
    API_COLUMN_NAME,
    { "Class", "string", 0, "Its class." },
    { "Hosts", "string", 0, "The hosts for which it has rules." },
    { "Address", "string", 0, "The addresses at which it is reached." },
    { "Ports", "string", 0, "The ports at which it is reached." },
    API_COLUMN_AGE,
    { 0 },
};

static void hosts_cell(json_t **cells, const json_t *rules)
{
    buf_auto text = BUF_INIT(4096);
    const json_t *rule;
    size_t i, n = 0;

    json_array_foreach (rules, i, rule) {
        const char *host = api_text_at(rule, "host");
        if (host[0] != '\0' && n++ < SHOWN_MAX)
            buf_addf(&text, "%s%s", text.n == 0 ? "" : ",", host);
    }
    if (n > SHOWN_MAX)
        buf_addf(&text, " + %zu more...", n - SHOWN_MAX);
    api_cell_or(cells, text.p, "*");
}

static void ingress_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const json_t *addresses = json_at(o, "status.loadBalancer.ingress");
    const json_t *first = json_array_get(addresses, 0);

    name_cell(cells, o);
    api_cell_or(cells, api_text_at(o, "spec.ingressClassName"), "<none>");
    hosts_cell(cells, json_at(o, "spec.rules"));
    api_cell_list(cells, addresses, api_text_at(first, "ip")[0] != '\0' ? "ip" : "hostname");
    api_cell(cells, json_array_size(json_at(o, "spec.tls")) > 0 ? "80, 443" : "80");
    api_cell_age(cells, o, now_ns);
}

static const struct api_column ingress_class_columns[] = {
    API_COLUMN_NAME,
    { "Controller", "string", 0, "What acts on the Ingresses of the class." },
    { "Parameters", "string", 0, "An object with its parameters." },
    API_COLUMN_AGE,
    { 0 },
};

static void ingress_class_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const char *group = api_text_at(o, "spec.parameters.apiGroup");
    char text[600] = "<none>";

    if (json_at(o, "spec.parameters") != NULL)
        snprintf(text, sizeof(text), "%s%s%s/%s", api_text_at(o, "spec.parameters.kind"),
                 group[0] == '\0' ? "" : ".", group, api_text_at(o, "spec.parameters.name"));
    name_cell(cells, o);
    api_cell(cells, api_text_at(o, "spec.controller"));
    api_cell(cells, text);
    api_cell_age(cells, o, now_ns);
}

static const struct api_column network_policy_columns[] = {
    API_COLUMN_NAME,
    { "Pod-Selector", "string", 0, "The labels of the pods that it is about." },
    API_COLUMN_AGE,
    { 0 },
};

static void network_policy_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    name_cell(cells, o);
    api_cell_selector(cells, json_at(o, "spec.podSelector"));
    api_cell_age(cells, o, now_ns);
}

static const struct api_column endpoints_columns[] = {
    API_COLUMN_NAME,
    { "Endpoints", "string", 0, "The addresses with their ports." },
    API_COLUMN_AGE,
    { 0 },
};

static void endpoints_cell(json_t **cells, const json_t *subsets)
{
    buf_auto text = BUF_INIT(4096);
    const json_t *subset, *address, *port;
    size_t i, j, k, n = 0;

    json_array_foreach (subsets, i, subset) {
        const json_t *ports = json_object_get(subset, "ports"),
                     *addresses = json_object_get(subset, "addresses");
        json_array_foreach (ports, j, port) {
            json_array_foreach (addresses, k, address) {
                if (n++ < SHOWN_MAX)
                    buf_addf(&text, "%s%s:%lld", text.n == 0 ? "" : ",", api_text_at(address, "ip"),
                             (long long)api_number_at(port, "port"));
            }
        }
    }
    if (n > SHOWN_MAX)
        buf_addf(&text, " + %zu more...", n - SHOWN_MAX);
    api_cell_or(cells, text.p, "<none>");
}

static void endpoints_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    name_cell(cells, o);
    endpoints_cell(cells, json_object_get(o, "subsets"));
    api_cell_age(cells, o, now_ns);
}

/* ---- PodDisruptionBudget ---- */

static const struct api_column budget_columns[] = {
    API_COLUMN_NAME,
    { "Min Available", "string", 0, "How many pods must stay." },
    { "Max Unavailable", "string", 0, "How many pods may be missing." },
    { "Allowed Disruptions", "integer", 0, "How many pods may be evicted now." },
    API_COLUMN_AGE,
    { 0 },
};

/* A number, or a text such as "50%". */
static void amount_cell(json_t **cells, const json_t *v)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
    api_cell(cells, v == NULL ? "N/A" : json_is_string(v) ? json_string_value(v) : text);
}

static void budget_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    name_cell(cells, o);
    amount_cell(cells, json_at(o, "spec.minAvailable"));
    amount_cell(cells, json_at(o, "spec.maxUnavailable"));
    api_cell_number(cells, api_number_at(o, "status.disruptionsAllowed"));
    api_cell_age(cells, o, now_ns);
}

/* ---- bindings of roles ---- */

static const struct api_column binding_columns[] = {
    API_COLUMN_NAME,
    { "Role", "string", 0, "The role." },
    API_COLUMN_AGE,
    { "Users", "string", 1, "The users that have it." },
    { "Groups", "string", 1, "The groups that have it." },
    { "ServiceAccounts", "string", 1, "The service accounts that have it." },
    { 0 },
};

static void subjects_cell(json_t **cells, const json_t *subjects, const char *kind, bool namespaced)
{
    buf_auto text = BUF_INIT(64 * 1024);
    const json_t *s;
    size_t i;

    json_array_foreach (subjects, i, s) {
        if (strcmp(api_text_at(s, "kind"), kind) == 0)
            buf_addf(&text, "%s%s%s%s", text.n == 0 ? "" : ", ",
                     namespaced ? api_text_at(s, "namespace") : "", namespaced ? "/" : "",
                     api_text_at(s, "name"));
    }
    api_cell(cells, text.p);
}

static void binding_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const json_t *subjects = json_object_get(o, "subjects");
    char role[400];

    snprintf(role, sizeof(role), "%s/%s", api_text_at(o, "roleRef.kind"), api_text_at(o, "roleRef.name"));
    name_cell(cells, o);
    api_cell(cells, role);
    api_cell_age(cells, o, now_ns);
    subjects_cell(cells, subjects, "User", false);
    subjects_cell(cells, subjects, "Group", false);
    subjects_cell(cells, subjects, "ServiceAccount", true);
}

/* ---- StorageClass ---- */

static const struct api_column storage_class_columns[] = {
    API_COLUMN_NAME,
    { "Provisioner", "string", 0, "The storage driver." },
    { "ReclaimPolicy", "string", 0, "What becomes of a volume when its claim is removed." },
    { "VolumeBindingMode", "string", 0, "When a volume is made for a claim." },
    { "AllowVolumeExpansion", "string", 0, "Whether volumes can grow." },
    API_COLUMN_AGE,
    { 0 },
};

static void storage_class_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const json_t *annotations = json_at(o, "metadata.annotations");
    const char *is_default =
        json_string_value(json_object_get(annotations, "storageclass.kubernetes.io/is-default-class"));
    char name[300];

    snprintf(name, sizeof(name), "%s%s", api_text_at(o, "metadata.name"),
             is_default != NULL && strcmp(is_default, "true") == 0 ? " (default)" : "");
    api_cell(cells, name);
    api_cell(cells, api_text_at(o, "provisioner"));
    api_cell_or(cells, api_text_at(o, "reclaimPolicy"), "Delete");
    api_cell_or(cells, api_text_at(o, "volumeBindingMode"), "Immediate");
    api_append(cells, json_boolean(json_is_true(json_object_get(o, "allowVolumeExpansion"))));
    api_cell_age(cells, o, now_ns);
}

/* ---- ControllerRevision ---- */

static const struct api_column revision_columns[] = {
    API_COLUMN_NAME,
    { "Controller", "string", 0, "The workload whose template it remembers." },
    { "Revision", "string", 0, "Its number." },
    API_COLUMN_AGE,
    { 0 },
};

static void revision_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const json_t *owner = json_array_get(json_at(o, "metadata.ownerReferences"), 0);
    const char *api_version = api_text_at(owner, "apiVersion"), *kind = api_text_at(owner, "kind"),
               *slash = strchr(api_version, '/');
    char text[400] = "<none>", lower[64];
    size_t n = 0;

    for (; kind[n] != '\0' && n + 1 < sizeof(lower); n++)
        lower[n] = (char)tolower((unsigned char)kind[n]);
    lower[n] = '\0';
    if (n > 0)
        snprintf(text, sizeof(text), "%s%s%.*s/%s", lower, slash != NULL ? "." : "",
                 slash != NULL ? (int)(slash - api_version) : 0, api_version, api_text_at(owner, "name"));
    name_cell(cells, o);
    api_cell(cells, text);
    api_cell_number(cells, api_number_at(o, "revision"));
    api_cell_age(cells, o, now_ns);
}

const struct api_columns api_columns_shown[] = {
    { "apps", "ControllerRevision", revision_columns, revision_cells },
    { "networking.k8s.io", "Ingress", ingress_columns, ingress_cells },
    { "networking.k8s.io", "IngressClass", ingress_class_columns, ingress_class_cells },
    { "networking.k8s.io", "NetworkPolicy", network_policy_columns, network_policy_cells },
    { "", "Endpoints", endpoints_columns, endpoints_cells },
    { "policy", "PodDisruptionBudget", budget_columns, budget_cells },
    { "rbac.authorization.k8s.io", "RoleBinding", binding_columns, binding_cells },
    { "rbac.authorization.k8s.io", "ClusterRoleBinding", binding_columns, binding_cells },
    { "storage.k8s.io", "StorageClass", storage_class_columns, storage_class_cells },
    { 0 },
};
