/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for a Service, as Kubernetes' validation has them (pkg/apis/core/validation, ValidateService).
 * Nothing here acts on one, but a manifest that a cluster refuses is refused.
 */
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"

#include <string.h>

enum kind_of { CLUSTER_IP, NODE_PORT, LOAD_BALANCER, EXTERNAL_NAME, OTHER };

static const char *text_of(const json_t *o, const char *key, const char *otherwise)
{
    const char *text = json_str(o, key);

    return text != NULL && text[0] != '\0' ? text : otherwise;
}

static enum kind_of kind_of(const json_t *spec)
{
    static const char *const names[] = { "ClusterIP", "NodePort", "LoadBalancer", "ExternalName" };
    const char *type = text_of(spec, "type", names[CLUSTER_IP]);
    size_t i = 0;

    while (i < ARRAY_LEN(names) && strcmp(names[i], type) != 0)
        i++;
    return (enum kind_of)i;
}

static bool is_headless(const json_t *spec)
{
    return strcmp(text_of(spec, "clusterIP", ""), "None") == 0;
}

/* The field, if it is set, must be one of `names`; `allowed` lists them for the message ("A, B and C"). */
static void check_word(struct api_check *c, const json_t *spec, const char *field, const char *const *names,
                       const char *allowed)
{
    const char *text = json_str(spec, field);

    if (text == NULL || text[0] == '\0')
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

static void check_port(struct api_check *c, const json_t *spec, const json_t *ports, size_t at)
{
    static const char *const protocols[] = { "SCTP", "TCP", "UDP", NULL };
    const json_t *port = json_array_get(ports, at), *other;
    const char *name = text_of(port, "name", NULL), *rule, *protocol = text_of(port, "protocol", "TCP");
    bool twice = false, same = false;

    for (size_t i = 0; i < at; i++) {
        other = json_array_get(ports, i);
        twice = twice || (name != NULL && strcmp(text_of(other, "name", ""), name) == 0);
        same = same || (json_int(other, "port", 0) == json_int(port, "port", 0) &&
                        strcmp(text_of(other, "protocol", "TCP"), protocol) == 0);
    }
    rule = name != NULL ? api_format_rule(API_FMT_LABEL, name) : NULL;
    if (name == NULL && json_array_size(ports) > 1)
        api_fault_at(c, "name", "required");
    else if (rule != NULL)
        api_fault_at(c, "name", "%s %s", QUOTE(name), rule);
    else if (twice)
        api_fault_at(c, "name", "%s is given twice", QUOTE(name));
    check_number(c, "port", json_int(port, "port", 0), 1, UINT16_MAX);
    check_word(c, port, "protocol", protocols, "SCTP, TCP and UDP");
    check_target(c, port);
    if (text_of(port, "appProtocol", NULL) != NULL) {
        rule = api_format_rule(API_FMT_LABEL_KEY, json_str(port, "appProtocol"));
        if (rule != NULL)
            api_fault_at(c, "appProtocol", "%s %s", QUOTE(json_str(port, "appProtocol")), rule);
    }
    if (same)
        api_fault(c, "%lld/%s is given twice", (long long)json_int(port, "port", 0), protocol);
    if (json_int(port, "nodePort", 0) != 0 && kind_of(spec) == CLUSTER_IP)
        api_fault_at(c, "nodePort", "not allowed: may not be used when `type` is 'ClusterIP'");
}

static void check_ports(struct api_check *c, const json_t *spec)
{
    const json_t *ports = json_object_get(spec, "ports");
    size_t mark;

    if (json_array_size(ports) == 0 && !is_headless(spec) && kind_of(spec) != EXTERNAL_NAME)
        api_fault_at(c, "ports", "required");
    for (size_t i = 0; i < json_array_size(ports); i++) {
        size_t outer = api_enter(c, "ports");

        mark = api_enter_index(c, i);
        check_port(c, spec, ports, i);
        api_leave(c, mark);
        api_leave(c, outer);
    }
}

/* ---- addresses and names ---- */

static void check_addresses(struct api_check *c, const json_t *spec)
{
    const char *address = text_of(spec, "clusterIP", NULL), *name = text_of(spec, "externalName", NULL),
               *rule;
    const json_t *one;
    size_t i;

    if (kind_of(spec) == EXTERNAL_NAME) {
        size_t n = name != NULL ? strlen(name) : 0;
        str_auto bare = name != NULL ? strndup(name, n > 0 && name[n - 1] == '.' ? n - 1 : n) : NULL;

        rule = bare != NULL ? api_format_rule(API_FMT_SUBDOMAIN, bare) : NULL;
        if (address != NULL)
            api_fault_at(c, "clusterIPs", "not allowed: may not be set for ExternalName services");
        if (name == NULL)
            api_fault_at(c, "externalName", "required");
        else if (rule != NULL)
            api_fault_at(c, "externalName", "%s %s", QUOTE(name), rule);
    } else if (address != NULL && !is_headless(spec) && api_format_rule(API_FMT_IP, address) != NULL) {
        size_t outer = api_enter(c, "clusterIPs"), mark = api_enter_index(c, 0);

        api_fault(c, "%s must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", QUOTE(address));
        api_leave(c, mark);
        api_leave(c, outer);
    }
    if (is_headless(spec) && (kind_of(spec) == NODE_PORT || kind_of(spec) == LOAD_BALANCER)) {
        size_t outer = api_enter(c, "clusterIPs"), mark = api_enter_index(c, 0);

        api_fault(c, "may not be set to 'None' for %s services", json_str(spec, "type"));
        api_leave(c, mark);
        api_leave(c, outer);
    }
    json_array_foreach (json_object_get(spec, "externalIPs"), i, one) {
        size_t outer = api_enter(c, "externalIPs"), mark = api_enter_index(c, i);
        const char *text = json_string_value(one);

        if (text != NULL && api_format_rule(API_FMT_IP, text) != NULL)
            api_fault(c, "%s must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", QUOTE(text));
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
    const bool by_client = strcmp(text_of(spec, "sessionAffinity", "None"), "ClientIP") == 0;

    check_word(c, spec, "sessionAffinity", affinities, "ClientIP and None");
    if (by_client && json_is_integer(seconds) &&
        (json_integer_value(seconds) <= 0 || json_integer_value(seconds) > 86400))
        api_fault_at(c, "sessionAffinityConfig.clientIP.timeoutSeconds",
                     "must be greater than 0 and less than 86400");
}

static void check_types(struct api_check *c, const json_t *spec)
{
    static const char *const types[] = { "ClusterIP", "ExternalName", "LoadBalancer", "NodePort", NULL },
                             *const policies[] = { "Cluster", "Local", NULL },
                             *const families[] = { "PreferDualStack", "RequireDualStack", "SingleStack",
                                                   NULL },
                             *const of_balancer[] = { "loadBalancerSourceRanges", "loadBalancerClass",
                                                      "allocateLoadBalancerNodePorts", NULL };
    const enum kind_of kind = kind_of(spec);

    check_word(c, spec, "type", types, "ClusterIP, ExternalName, LoadBalancer and NodePort");
    for (const char *const *name = of_balancer; kind != LOAD_BALANCER && *name != NULL; name++)
        if (json_object_get(spec, *name) != NULL && !json_is_null(json_object_get(spec, *name)) &&
            (!json_is_array(json_object_get(spec, *name)) ||
             json_array_size(json_object_get(spec, *name)) > 0))
            api_fault_at(c, *name, "not allowed: may only be used when `type` is 'LoadBalancer'");
    if (text_of(spec, "externalTrafficPolicy", NULL) != NULL && kind != NODE_PORT && kind != LOAD_BALANCER &&
        json_array_size(json_object_get(spec, "externalIPs")) == 0)
        api_fault_at(c, "externalTrafficPolicy", "may only be set for externally-accessible services");
    else
        check_word(c, spec, "externalTrafficPolicy", policies, "Cluster and Local");
    check_word(c, spec, "internalTrafficPolicy", policies, "Cluster and Local");
    check_word(c, spec, "ipFamilyPolicy", families, "PreferDualStack, RequireDualStack and SingleStack");
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
    const char *rule = meta->name != NULL ? api_format_rule(API_FMT_LABEL, meta->name) : NULL;
    size_t mark = api_enter(c, "metadata");

    /* A name that is not even a subdomain is refused for every kind of object. */
    if (rule != NULL && api_format_rule(API_FMT_SUBDOMAIN, meta->name) == NULL)
        api_fault_at(c, "name", "%s %s", QUOTE(meta->name), rule);
    api_leave(c, mark);
    mark = api_enter(c, "spec");
    check_ports(c, spec);
    check_addresses(c, spec);
    if (kind_of(spec) != EXTERNAL_NAME)
        check_selector(c, json_object_get(spec, "selector"));
    check_affinity(c, spec);
    check_types(c, spec);
    api_leave(c, mark);
}
