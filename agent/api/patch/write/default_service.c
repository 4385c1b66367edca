/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults of a Service as an apiserver writes them (core/v1 defaults.go, and the allocation of families of
 * addresses in its storage), in a cluster whose services have IPv4 addresses unless they ask for others.
 * Addresses and ports of nodes are not given out: nothing here forwards to them.
 */
#include "agent/api/patch/write/default_service.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdint.h>
#include <string.h>

#define AFFINITY_SECONDS 10800 /* three hours */

static bool set(json_t *object, const char *name, json_t *value)
{
    if (json_object_get(object, name) == NULL)
        return json_object_set_new(object, name, value) == 0;
    json_decref(value);
    return true;
}

static bool is_text(const json_t *object, const char *name, const char *text)
{
    return str_eq(json_str(object, name), text);
}

/* ---- ports ---- */

/* 0 and "" are no port. */
static bool is_no_port(const json_t *v)
{
    return v == NULL || (json_is_integer(v) && json_integer_value(v) == 0) ||
           (json_is_string(v) && json_string_length(v) == 0);
}

static bool default_ports(json_t *ports)
{
    json_t *port;
    size_t i;

    json_array_foreach (ports, i, port)
        if (json_object_get(port, "port") != NULL && is_no_port(json_object_get(port, "targetPort")) &&
            json_object_set(port, "targetPort", json_object_get(port, "port")) != 0)
            return false;
    return true;
}

/* ---- who comes back to the same pod, and from where ---- */

static bool default_affinity(json_t *spec)
{
    json_t *config;

    if (is_text(spec, "sessionAffinity", "None"))
        json_object_del(spec, "sessionAffinityConfig");
    if (!is_text(spec, "sessionAffinity", "ClientIP"))
        return true;
    if (!set(spec, "sessionAffinityConfig", json_object()))
        return false;
    config = json_object_get(spec, "sessionAffinityConfig");
    return set(config, "clientIP", json_object()) &&
           set(json_object_get(config, "clientIP"), "timeoutSeconds", json_integer(AFFINITY_SECONDS));
}

static bool default_policies(json_t *spec)
{
    const bool balanced = is_text(spec, "type", "LoadBalancer"), local = is_text(spec, "type", "ClusterIP"),
               outside = balanced || is_text(spec, "type", "NodePort");
    const bool reached = outside || (local && json_array_size(json_object_get(spec, "externalIPs")) > 0);

    if (!outside && !local) /* an external name has no pods */
        json_object_del(spec, "internalTrafficPolicy");
    return (!reached || set(spec, "externalTrafficPolicy", json_string("Cluster"))) &&
           (!(outside || local) || set(spec, "internalTrafficPolicy", json_string("Cluster"))) &&
           (!balanced || set(spec, "allocateLoadBalancerNodePorts", json_true()));
}

/* ---- addresses and their families ---- */

static const char *family_of(const char *address)
{
    return strchr(address, ':') != NULL ? "IPv6" : "IPv4";
}

static bool add_family(json_t *families, const char *name)
{
    return json_has(families, name) || json_array_append_new(families, json_string(name)) == 0;
}

/* The families of the addresses; without any, the cluster's. */
static json_t *families_of(const json_t *addresses, bool both)
{
    json_t *families = json_array(), *v;
    bool ok = families != NULL;
    size_t i;

    json_array_foreach ((json_t *)(uintptr_t)addresses, i, v)
        if (json_is_string(v) && strcmp(json_string_value(v), "None") != 0)
            ok = ok && add_family(families, family_of(json_string_value(v)));
    if (ok && json_array_size(families) == 0)
        ok = add_family(families, "IPv4");
    if (ok && both)
        ok = add_family(families, "IPv4") && add_family(families, "IPv6");
    if (ok)
        return families;
    json_decref(families);
    return NULL;
}

bool default_service_allocated(json_t *spec)
{
    const char *address = json_str(spec, "clusterIP");
    const bool headless = str_eq(address, "None"),
               alone = headless && json_object_size(json_object_get(spec, "selector")) == 0;
    bool both;
    json_t *families;

    if (is_text(spec, "type", "ExternalName"))
        return true;
    if (address != NULL && address[0] != '\0' && !set(spec, "clusterIPs", json_pack("[s]", address)))
        return false;
    both = (alone && json_object_get(spec, "ipFamilyPolicy") == NULL) || /* whoever fills it in knows */
           is_text(spec, "ipFamilyPolicy", "RequireDualStack");
    families = json_object_get(spec, "ipFamilies");
    if (families == NULL) {
        families = families_of(json_object_get(spec, "clusterIPs"), both);
        if (families == NULL || json_object_set_new(spec, "ipFamilies", families) != 0)
            return false;
    } else if (both && json_is_array(families)) {
        if (!add_family(families, "IPv4") || !add_family(families, "IPv6"))
            return false;
    }
    return set(spec, "ipFamilyPolicy",
               json_string(json_array_size(families) > 1 ? "RequireDualStack" : "SingleStack"));
}

bool default_service(json_t *spec)
{
    return default_ports(json_object_get(spec, "ports")) && default_affinity(spec) && default_policies(spec);
}
