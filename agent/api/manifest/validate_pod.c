/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for the pod as a whole; calls the other passes. */
#include "agent/api/manifest/internal.h"

#include <string.h>

#define DNS_NAMESERVERS_MAX 3 /* the maximum of libc's resolver */
#define DNS_SEARCHES_MAX 32
#define DNS_SEARCH_CHARS_MAX 2048
#define HOSTNAME_OVERRIDE_MAX 64 /* the kernel's HOST_NAME_MAX */

static void check_dns(struct api_check *c, const struct api_pod_spec *spec, const json_t *object)
{
    size_t chars = 0, mark = api_enter(c, "dnsConfig");
    bool given = json_is_object(json_object_get(object, "dnsConfig"));

    if (str_eq(spec->dns_policy, "None") && !given)
        api_fault(c, "required with dnsPolicy None");
    else if (str_eq(spec->dns_policy, "None") &&
             json_array_size(json_object_get(json_object_get(object, "dnsConfig"), "nameservers")) == 0)
        api_fault_at(c, "nameservers", "at least one is required with dnsPolicy None");
    if (spec->dns_nameservers.n > DNS_NAMESERVERS_MAX)
        api_fault_at(c, "nameservers", "%zu are too many, at most %d are allowed", spec->dns_nameservers.n,
                     DNS_NAMESERVERS_MAX);
    if (spec->dns_searches.n > DNS_SEARCHES_MAX)
        api_fault_at(c, "searches", "%zu are too many, at most %d are allowed", spec->dns_searches.n,
                     DNS_SEARCHES_MAX);
    for (size_t i = 0; i < spec->dns_searches.n; i++)
        chars += strlen(spec->dns_searches.v[i]) + (i > 0);
    if (chars > DNS_SEARCH_CHARS_MAX)
        api_fault_at(c, "searches",
                     "%zu characters are too many, at most %d (with blanks between) are allowed", chars,
                     DNS_SEARCH_CHARS_MAX);
    api_leave(c, mark);
}

static void check_host_names(struct api_check *c, const struct api_pod_spec *spec)
{
    if (spec->hostname_override == NULL)
        return;
    if (strlen(spec->hostname_override) > HOSTNAME_OVERRIDE_MAX)
        api_fault_at(c, "hostnameOverride", "%zu characters are too many, at most %d are allowed",
                     strlen(spec->hostname_override), HOSTNAME_OVERRIDE_MAX);
    if (spec->hostname_as_fqdn)
        api_fault_at(c, "hostnameOverride", "cannot be used together with setHostnameAsFQDN");
    if (spec->host_network)
        api_fault_at(c, "hostnameOverride", "cannot be used together with hostNetwork");
}

static void check_namespaces(struct api_check *c, const struct api_pod_spec *spec)
{
    bool own_users = spec->has_host_users && !spec->host_users;

    if (own_users && spec->host_network)
        api_fault_at(c, "hostNetwork", "cannot be true when hostUsers is false");
    if (own_users && spec->host_pid)
        api_fault_at(c, "hostPID", "cannot be true when hostUsers is false");
    if (own_users && spec->host_ipc)
        api_fault_at(c, "hostIPC", "cannot be true when hostUsers is false");
    if (spec->share_process_namespace && spec->host_pid)
        api_fault_at(c, "shareProcessNamespace", "cannot be true together with hostPID");
}

void api_validate_pod(struct api_check *c, const struct api_pod *pod, const json_t *object)
{
    const struct api_pod_spec *spec = &pod->spec;
    const json_t *json = json_object_get(object, "spec");
    size_t mark;

    api_validate_meta(c, &pod->meta);
    api_validate_annotations(c, pod);
    mark = api_enter(c, "spec");
    api_validate_volumes(c, spec);
    api_validate_containers(c, spec, json);
    api_validate_pod_resources(c, spec);
    api_validate_overhead(c, "overhead", &spec->overhead);
    api_validate_kvs(c, "nodeSelector", &spec->node_selector, API_FMT_LABEL_VALUE);
    api_validate_pod_security(c, spec, json_object_get(json, "securityContext"));
    check_dns(c, spec, json);
    check_host_names(c, spec);
    check_namespaces(c, spec);
    api_validate_scheduling(c, json);
    api_leave(c, mark);
}
