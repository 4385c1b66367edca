/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for a Service, as Kubernetes' validation has them (pkg/apis/core/validation, ValidateService).
 * Nothing here acts on one, but a manifest that a cluster refuses is refused.
 */
#include "agent/api/manifest/service.h"
#include "base/codec/json.h"

#include <string.h>

const char *service_text(const json_t *o, const char *key, const char *otherwise)
{
    const char *text = json_str(o, key);

    return text != NULL && text[0] != '\0' ? text : otherwise;
}

enum service_type service_type_of(const json_t *spec)
{
    static const char *const names[] = { "ClusterIP", "NodePort", "LoadBalancer", "ExternalName" };
    const char *type = service_text(spec, "type", names[SERVICE_CLUSTER_IP]);
    size_t i = 0;

    while (i < ARRAY_LEN(names) && strcmp(names[i], type) != 0)
        i++;
    return (enum service_type)i;
}

bool service_is_headless(const json_t *spec)
{
    return strcmp(service_text(spec, "clusterIP", ""), "None") == 0;
}

/* "" counts as absent in fields that are no pointers in Go. */
static bool empty_is_a_word(const char *field)
{
    static const char *const fields[] = { "internalTrafficPolicy", "ipFamilyPolicy", "trafficDistribution" };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (strcmp(fields[i], field) == 0)
            return true;
    return false;
}

/* The field, if it is set, must be one of `names`; `allowed` lists them for the message ("A, B and C"). */
static void check_word(struct api_check *c, const json_t *spec, const char *field, const char *const *names,
                       const char *allowed)
{
    const char *text = json_str(spec, field);

    if (text == NULL || (text[0] == '\0' && !empty_is_a_word(field)))
        return;
    for (; *names != NULL; names++)
        if (strcmp(*names, text) == 0)
            return;
    api_fault_at(c, field, "%s is not supported, allowed are %s", QUOTE(text), allowed);
}

static void check_number(struct api_check *c, const char *field, json_int_t n, long long from, long long to)
{
    if (n < from || n > to)
        api_fault_at(c, field, "%lld is out of range, allowed are %lld to %lld", (long long)n, from, to);
}

/* ---- ports ---- */

static void check_target(struct api_check *c, const json_t *port)
{
    const json_t *target = json_object_get(port, "targetPort");
    const char *rule;

    if (!json_is_string(target)) {
        check_number(c, "targetPort",
                     json_is_integer(target) ? json_integer_value(target) : json_int(port, "port", 0), 1,
                     UINT16_MAX);
        return;
    }
    rule = api_format_rule(API_FMT_PORT_NAME, json_string_value(target));
    if (rule != NULL)
        api_fault_at(c, "targetPort", "%s %s", QUOTE(json_string_value(target)), rule);
}

static void check_name(struct api_check *c, const json_t *ports, size_t at)
{
    const json_t *port = json_array_get(ports, at);
    const char *name = service_text(port, "name", NULL),
               *rule = name != NULL ? api_format_rule(API_FMT_LABEL, name) : NULL;
    bool twice = false;

    for (size_t i = 0; i < at; i++)
        twice =
            twice || (name != NULL && strcmp(service_text(json_array_get(ports, i), "name", ""), name) == 0);
    if (name == NULL && json_array_size(ports) > 1)
        api_fault_at(c, "name", "required");
    else if (rule != NULL)
        api_fault_at(c, "name", "%s %s", QUOTE(name), rule);
    else if (twice)
        api_fault_at(c, "name", "%s is given twice", QUOTE(name));
}

static bool same_port(const json_t *a, const json_t *b)
{
    return json_int(a, "port", 0) == json_int(b, "port", 0) &&
           strcmp(service_text(a, "protocol", "TCP"), service_text(b, "protocol", "TCP")) == 0;
}

/* A port of the node belongs to one port of the service, of one protocol or more. */
static void check_node_port(struct api_check *c, const json_t *spec, const json_t *ports, size_t at)
{
    const json_t *port = json_array_get(ports, at), *other;
    const json_int_t n = json_int(port, "nodePort", 0);
    bool twice = false, taken = false;

    for (size_t i = 0; n != 0 && i < at; i++) {
        other = json_array_get(ports, i);
        if (json_int(other, "nodePort", 0) != n)
            continue;
        twice = twice || same_port(port, other);
        taken = taken || json_int(port, "port", 0) != json_int(other, "port", 0);
    }
    if (n != 0 && service_type_of(spec) == SERVICE_CLUSTER_IP)
        api_fault_at(c, "nodePort", "not allowed: may not be used when `type` is 'ClusterIP'");
    if (twice)
        api_fault_at(c, "nodePort", "%lld is given twice", (long long)n);
    else if (taken && service_type_of(spec) != SERVICE_CLUSTER_IP)
        api_fault_at(c, "nodePort", "provided port is already allocated");
}

static void check_port(struct api_check *c, const json_t *spec, const json_t *ports, size_t at)
{
    static const char *const protocols[] = { "SCTP", "TCP", "UDP", NULL };
    const json_t *port = json_array_get(ports, at);
    const char *application = json_str(port, "appProtocol"),
               *rule = application != NULL ? api_format_rule(API_FMT_LABEL_KEY, application) : NULL;
    bool same = false;

    for (size_t i = 0; i < at; i++)
        same = same || same_port(port, json_array_get(ports, i));
    check_name(c, ports, at);
    check_number(c, "port", json_int(port, "port", 0), 1, UINT16_MAX);
    check_word(c, port, "protocol", protocols, "SCTP, TCP and UDP");
    check_target(c, port);
    if (rule != NULL)
        api_fault_at(c, "appProtocol", "%s %s", QUOTE(application), rule);
    check_node_port(c, spec, ports, at);
    if (same)
        api_fault(c, "%lld/%s is given twice", (long long)json_int(port, "port", 0),
                  service_text(port, "protocol", "TCP"));
}

static void check_ports(struct api_check *c, const json_t *spec)
{
    const json_t *ports = json_object_get(spec, "ports");
    size_t mark;

    if (json_array_size(ports) == 0 && !service_is_headless(spec) &&
        service_type_of(spec) != SERVICE_EXTERNAL_NAME)
        api_fault_at(c, "ports", "required");
    for (size_t i = 0; i < json_array_size(ports); i++) {
        size_t outer = api_enter(c, "ports");

        mark = api_enter_index(c, i);
        check_port(c, spec, ports, i);
        api_leave(c, mark);
        api_leave(c, outer);
    }
}

/* ---- what only some types have ---- */

static void check_affinity(struct api_check *c, const json_t *spec)
{
    static const char *const affinities[] = { "ClientIP", "None", NULL };
    const json_t *config = json_object_get(spec, "sessionAffinityConfig"),
                 *seconds = json_at(config, "clientIP.timeoutSeconds");
    const bool by_client = strcmp(service_text(spec, "sessionAffinity", "None"), "ClientIP") == 0;

    check_word(c, spec, "sessionAffinity", affinities, "ClientIP and None");
    if (by_client && json_is_integer(seconds) &&
        (json_integer_value(seconds) <= 0 || json_integer_value(seconds) > 86400))
        api_fault_at(c, "sessionAffinityConfig.clientIP.timeoutSeconds",
                     "must be greater than 0 and less than 86400");
}

static bool is_given(const json_t *spec, const char *name)
{
    const json_t *v = json_object_get(spec, name);

    return v != NULL && !json_is_null(v) && (!json_is_array(v) || json_array_size(v) > 0);
}

static void check_balancer(struct api_check *c, const json_t *spec)
{
    static const char *const fields[] = { "loadBalancerSourceRanges", "allocateLoadBalancerNodePorts",
                                          "loadBalancerClass" };
    const char *class = json_str(spec, "loadBalancerClass"),
               *rule = class != NULL ? api_format_rule(API_FMT_LABEL_KEY, class) : NULL;

    if (service_type_of(spec) == SERVICE_LOAD_BALANCER) {
        service_check_ranges(c, spec);
        if (rule != NULL)
            api_fault_at(c, "loadBalancerClass", "%s %s", QUOTE(class), rule);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (is_given(spec, fields[i]))
            api_fault_at(c, fields[i], "not allowed: may only be used when `type` is 'LoadBalancer'");
}

static void check_external(struct api_check *c, const json_t *spec)
{
    static const char *const policies[] = { "Cluster", "Local", NULL };
    const enum service_type type = service_type_of(spec);
    const char *policy = service_text(spec, "externalTrafficPolicy", NULL);
    const bool outside = type == SERVICE_NODE_PORT || type == SERVICE_LOAD_BALANCER ||
                         (type == SERVICE_CLUSTER_IP && is_given(spec, "externalIPs"));
    const json_int_t health = json_int(spec, "healthCheckNodePort", 0);

    if (policy != NULL && !outside)
        api_fault_at(c, "externalTrafficPolicy", "may only be set for externally-accessible services");
    else
        check_word(c, spec, "externalTrafficPolicy", policies, "Cluster and Local");
    if (health == 0)
        return;
    if (type == SERVICE_LOAD_BALANCER && policy != NULL && strcmp(policy, "Local") == 0)
        check_number(c, "healthCheckNodePort", health, 1, UINT16_MAX);
    else
        api_fault_at(c, "healthCheckNodePort",
                     "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
}

static void check_types(struct api_check *c, const json_t *spec)
{
    static const char *const types[] = { "ClusterIP", "ExternalName", "LoadBalancer", "NodePort", NULL },
                             *const policies[] = { "Cluster", "Local", NULL },
                             *const families[] = { "PreferDualStack", "RequireDualStack", "SingleStack",
                                                   NULL },
                             *const distributions[] = { "PreferClose", "PreferSameZone", "PreferSameNode",
                                                        NULL };

    check_word(c, spec, "type", types, "ClusterIP, ExternalName, LoadBalancer and NodePort");
    check_balancer(c, spec);
    check_external(c, spec);
    check_word(c, spec, "internalTrafficPolicy", policies, "Cluster and Local");
    check_word(c, spec, "ipFamilyPolicy", families, "PreferDualStack, RequireDualStack and SingleStack");
    check_word(c, spec, "trafficDistribution", distributions,
               "PreferClose, PreferSameZone and PreferSameNode");
}

static void check_external_name(struct api_check *c, const json_t *spec)
{
    static const char *const fields[] = { "ipFamilies", "ipFamilyPolicy" };
    const char *name = service_text(spec, "externalName", NULL), *rule;
    const size_t n = name != NULL ? strlen(name) : 0;
    str_auto bare = name != NULL ? strndup(name, n > 0 && name[n - 1] == '.' ? n - 1 : n) : NULL;

    rule = bare != NULL ? api_format_rule(API_FMT_SUBDOMAIN, bare) : NULL;
    if (service_text(spec, "clusterIP", NULL) != NULL || is_given(spec, "clusterIPs"))
        api_fault_at(c, "clusterIPs", "not allowed: may not be set for ExternalName services");
    if (name == NULL)
        api_fault_at(c, "externalName", "required");
    else if (rule != NULL)
        api_fault_at(c, "externalName", "%s %s", QUOTE(name), rule);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (is_given(spec, fields[i]))
            api_fault_at(c, fields[i], "not allowed: may not be set for ExternalName services");
}

static void check_selector(struct api_check *c, const json_t *selector)
{
    size_t outer = api_enter(c, "selector");
    const char *key, *rule;
    const json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)selector, key, v) {
        size_t mark = api_enter_key(c, key);

        rule = api_format_rule(API_FMT_LABEL_KEY, key);
        if (rule != NULL)
            api_fault(c, "the key %s %s", QUOTE(key), rule);
        rule = json_is_string(v) ? api_format_rule(API_FMT_LABEL_VALUE, json_string_value(v)) : NULL;
        if (rule != NULL)
            api_fault(c, "the value %s %s", QUOTE(json_string_value(v)), rule);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

void api_validate_service(struct api_check *c, const struct api_meta *meta, const json_t *spec)
{
    size_t mark = api_enter(c, "metadata");

    /* A name that is not even a subdomain is refused for every kind of object. */
    if (meta->name != NULL && api_format_rule(API_FMT_SUBDOMAIN, meta->name) == NULL)
        api_validate_host_name(c, "name", meta->name);
    service_check_annotation(c, meta, spec);
    api_leave(c, mark);
    mark = api_enter(c, "spec");
    check_ports(c, spec);
    if (service_type_of(spec) == SERVICE_EXTERNAL_NAME)
        check_external_name(c, spec);
    else
        service_check_addresses(c, spec);
    service_check_external_ips(c, spec);
    check_selector(c, json_object_get(spec, "selector"));
    check_affinity(c, spec);
    check_types(c, spec);
    api_leave(c, mark);
}
