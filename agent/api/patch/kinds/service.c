/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Service and Ingress. */
#include "agent/api/patch/kinds/tables.h"

static const struct api_row service_port[] = {
    ROW("appProtocol", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("name", API_STRING),
    ROW("nodePort", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("port", API_INT32),
    ROW("protocol", API_STRING, .otherwise = "TCP"),
    ROW("targetPort", API_INT_OR_STRING),
    { 0 },
};
static const struct api_schema service_port_schema = SCHEMA("ServicePort", service_port);

static const struct api_row client_ip_config[] = {
    ROW("timeoutSeconds", API_INT32),
    { 0 },
};
static const struct api_schema client_ip_config_schema = SCHEMA("ClientIPConfig", client_ip_config);

static const struct api_row session_affinity_config[] = {
    ROW("clientIP", API_OBJECT, .nested = &client_ip_config_schema),
    { 0 },
};
static const struct api_schema session_affinity_config_schema =
    SCHEMA("SessionAffinityConfig", session_affinity_config);

static const struct api_row service_spec[] = {
    ROW("allocateLoadBalancerNodePorts", API_BOOL),
    ROW("clusterIP", API_STRING),
    ROW("clusterIPs", API_STRINGS),
    ROW("externalIPs", API_STRINGS),
    ROW("externalName", API_STRING),
    ROW("externalTrafficPolicy", API_STRING),
    ROW("healthCheckNodePort", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("internalTrafficPolicy", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("ipFamilies", API_STRINGS),
    ROW("ipFamilyPolicy", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("loadBalancerClass", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("loadBalancerIP", API_STRING),
    ROW("loadBalancerSourceRanges", API_STRINGS),
    ROW("ports", API_LIST, .merge_key = "port", .list_keys = "port,protocol", .nested = &service_port_schema),
    ROW("publishNotReadyAddresses", API_BOOL, .flags = API_ZERO_ABSENT),
    ROW("selector", API_STRING_MAP, .flags = API_ATOMIC),
    ROW("sessionAffinity", API_STRING, .otherwise = "None"),
    ROW("sessionAffinityConfig", API_OBJECT, .nested = &session_affinity_config_schema),
    ROW("trafficDistribution", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("type", API_STRING, .otherwise = "ClusterIP"),
    { 0 },
};
static const struct api_schema service_spec_schema = SCHEMA("ServiceSpec", service_spec);

static const struct api_row condition[] = {
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("observedGeneration", API_INT64, .flags = API_ZERO_ABSENT),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema condition_schema = SCHEMA("Condition", condition);

static const struct api_row port_status[] = {
    ROW("error", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("port", API_INT32, .otherwise = "0"),
    ROW("protocol", API_STRING),
    { 0 },
};
static const struct api_schema port_status_schema = SCHEMA("PortStatus", port_status);

static const struct api_row load_balancer_ingress[] = {
    ROW("hostname", API_STRING),
    ROW("ip", API_STRING),
    ROW("ipMode", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("ports", API_LIST, .nested = &port_status_schema),
    { 0 },
};
static const struct api_schema load_balancer_ingress_schema =
    SCHEMA("LoadBalancerIngress", load_balancer_ingress);

static const struct api_row load_balancer_status[] = {
    ROW("ingress", API_LIST, .nested = &load_balancer_ingress_schema),
    { 0 },
};
static const struct api_schema load_balancer_status_schema =
    SCHEMA("LoadBalancerStatus", load_balancer_status);

static const struct api_row service_status[] = {
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &condition_schema),
    ROW("loadBalancer", API_OBJECT, .otherwise = "{}", .nested = &load_balancer_status_schema),
    { 0 },
};
static const struct api_schema service_status_schema = SCHEMA("ServiceStatus", service_status);

static const struct api_row service[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &service_spec_schema),
    ROW("status", API_OBJECT, .nested = &service_status_schema),
    { 0 },
};
const struct api_schema patch_schema_service = SCHEMA("Service", service);

static const struct api_row typed_local_object_reference[] = {
    ROW("apiGroup", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("kind", API_STRING),
    ROW("name", API_STRING),
    { 0 },
};
static const struct api_schema typed_local_object_reference_schema =
    SCHEMA("TypedLocalObjectReference", typed_local_object_reference, .atomic = true);

static const struct api_row service_backend_port[] = {
    ROW("name", API_STRING),
    ROW("number", API_INT32, .flags = API_ZERO_ABSENT),
    { 0 },
};
static const struct api_schema service_backend_port_schema =
    SCHEMA("ServiceBackendPort", service_backend_port, .atomic = true);

static const struct api_row ingress_service_backend[] = {
    ROW("name", API_STRING),
    ROW("port", API_OBJECT, .nested = &service_backend_port_schema),
    { 0 },
};
static const struct api_schema ingress_service_backend_schema =
    SCHEMA("IngressServiceBackend", ingress_service_backend);

static const struct api_row ingress_backend[] = {
    ROW("resource", API_OBJECT, .nested = &typed_local_object_reference_schema),
    ROW("service", API_OBJECT, .nested = &ingress_service_backend_schema),
    { 0 },
};
static const struct api_schema ingress_backend_schema = SCHEMA("IngressBackend", ingress_backend);

static const struct api_row http_ingress_path[] = {
    ROW("backend", API_OBJECT, .otherwise = "{}", .nested = &ingress_backend_schema),
    ROW("path", API_STRING),
    ROW("pathType", API_STRING, .flags = API_KEEP_EMPTY),
    { 0 },
};
static const struct api_schema http_ingress_path_schema = SCHEMA("HTTPIngressPath", http_ingress_path);

static const struct api_row http_ingress_rule_value[] = {
    ROW("paths", API_LIST, .nested = &http_ingress_path_schema),
    { 0 },
};
static const struct api_schema http_ingress_rule_value_schema =
    SCHEMA("HTTPIngressRuleValue", http_ingress_rule_value);

static const struct api_row ingress_rule[] = {
    ROW("host", API_STRING),
    ROW("http", API_OBJECT, .nested = &http_ingress_rule_value_schema),
    { 0 },
};
static const struct api_schema ingress_rule_schema = SCHEMA("IngressRule", ingress_rule);

static const struct api_row ingress_tls[] = {
    ROW("hosts", API_STRINGS),
    ROW("secretName", API_STRING),
    { 0 },
};
static const struct api_schema ingress_tls_schema = SCHEMA("IngressTLS", ingress_tls);

static const struct api_row ingress_spec[] = {
    ROW("defaultBackend", API_OBJECT, .nested = &ingress_backend_schema),
    ROW("ingressClassName", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("rules", API_LIST, .nested = &ingress_rule_schema),
    ROW("tls", API_LIST, .nested = &ingress_tls_schema),
    { 0 },
};
static const struct api_schema ingress_spec_schema = SCHEMA("IngressSpec", ingress_spec);

static const struct api_row ingress_port_status[] = {
    ROW("error", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("port", API_INT32, .otherwise = "0"),
    ROW("protocol", API_STRING),
    { 0 },
};
static const struct api_schema ingress_port_status_schema = SCHEMA("IngressPortStatus", ingress_port_status);

static const struct api_row ingress_load_balancer_ingress[] = {
    ROW("hostname", API_STRING),
    ROW("ip", API_STRING),
    ROW("ports", API_LIST, .nested = &ingress_port_status_schema),
    { 0 },
};
static const struct api_schema ingress_load_balancer_ingress_schema =
    SCHEMA("IngressLoadBalancerIngress", ingress_load_balancer_ingress);

static const struct api_row ingress_load_balancer_status[] = {
    ROW("ingress", API_LIST, .nested = &ingress_load_balancer_ingress_schema),
    { 0 },
};
static const struct api_schema ingress_load_balancer_status_schema =
    SCHEMA("IngressLoadBalancerStatus", ingress_load_balancer_status);

static const struct api_row ingress_status[] = {
    ROW("loadBalancer", API_OBJECT, .otherwise = "{}", .nested = &ingress_load_balancer_status_schema),
    { 0 },
};
static const struct api_schema ingress_status_schema = SCHEMA("IngressStatus", ingress_status);

static const struct api_row ingress[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &ingress_spec_schema),
    ROW("status", API_OBJECT, .nested = &ingress_status_schema),
    { 0 },
};
const struct api_schema patch_schema_ingress = SCHEMA("Ingress", ingress);
