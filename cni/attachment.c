/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/attachment.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "cni/plugin/names.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

/* containerd's name, in addition to ours. */
#define CNI_ANNOTATIONS "io.kubernetes.cri.pod-annotations"

static bool is_ip(const char *text)
{
    unsigned char raw[16];

    return inet_pton(AF_INET, text, raw) == 1 || inet_pton(AF_INET6, text, raw) == 1;
}

static bool is_mac(const char *text)
{
    for (int i = 0; i < 17; i++)
        if (i % 3 == 2 ? text[i] != ':' : !isxdigit((unsigned char)text[i]))
            return false;
    return text[17] == '\0';
}

static enum err_code check_port(const struct cni_port_mapping *p, size_t i, struct err *e)
{
    if (p->host_port > 65535 || p->container_port < 1 || p->container_port > 65535)
        return err_set(e, ERR_INVALID, "port mapping %zu: %d to %d is out of range", i, p->host_port,
                       p->container_port);
    if (!str_eq(p->protocol, "tcp") && !str_eq(p->protocol, "udp") && !str_eq(p->protocol, "sctp"))
        return err_set(e, ERR_INVALID, "port mapping %zu: protocol \"%.20s\" is not tcp, udp or sctp", i,
                       p->protocol != NULL ? p->protocol : "");
    if (p->host_ip != NULL && p->host_ip[0] != '\0' && !is_ip(p->host_ip))
        return err_set(e, ERR_INVALID, "port mapping %zu: host IP \"%.60s\" is not an address", i,
                       p->host_ip);
    return ERR_OK;
}

enum err_code cni_attachment_check(const struct cni_attachment *a, bool add, struct err *e)
{
    const char *args[] = { a->pod_namespace, a->pod_name, a->pod_uid };

    if (!cni_name_ok(a->container_id))
        return err_set(e, ERR_INVALID,
                       "container id \"%.120s\": must begin with a letter or digit, then letters, digits, "
                       "\"_\", \".\", \"-\", at most %d",
                       a->container_id != NULL ? a->container_id : "", CNI_NAME_MAX);
    if (!cni_ifname_ok(a->ifname))
        return err_set(e, ERR_INVALID,
                       "interface name \"%.40s\": 1 to 15 bytes without \"/\", \":\" and blanks",
                       a->ifname != NULL ? a->ifname : "");
    if (add && (a->netns == NULL || a->netns[0] != '/'))
        return err_set(e, ERR_INVALID, "network namespace \"%.120s\" is not an absolute path",
                       a->netns != NULL ? a->netns : "");
    for (size_t i = 0; i < ARRAY_LEN(args); i++) {
        if (args[i] != NULL && !cni_arg_ok(args[i]))
            return err_set(e, ERR_INVALID, "\"%.120s\" is not valid in CNI_ARGS", args[i]);
    }
    if (a->n_ports > CNI_PORTS_MAX)
        return err_set(e, ERR_INVALID, "%zu port mappings are more than the %d allowed", a->n_ports,
                       CNI_PORTS_MAX);
    for (size_t i = 0; i < a->n_ports; i++) {
        if (check_port(&a->ports[i], i, e) != ERR_OK)
            return e->code;
    }
    if (a->ingress_bits < 0 || a->egress_bits < 0)
        return err_set(e, ERR_INVALID, "bandwidth is negative");
    if (a->ip != NULL && !is_ip(a->ip))
        return err_set(e, ERR_INVALID, "wanted IP \"%.60s\" is not an address", a->ip);
    if (a->mac != NULL && !is_mac(a->mac))
        return err_set(e, ERR_INVALID, "wanted MAC \"%.40s\" is not an address", a->mac);
    return ERR_OK;
}

char *cni_attachment_args(const struct cni_attachment *a)
{
    /* Without IgnoreUnknown=1 many plugins reject unknown keys. */
    return str_printf("IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s;"
                      "K8S_POD_UID=%s%s%s",
                      a->pod_namespace != NULL ? a->pod_namespace : "",
                      a->pod_name != NULL ? a->pod_name : "", a->container_id,
                      a->pod_uid != NULL ? a->pod_uid : "", a->ip != NULL ? ";IP=" : "",
                      a->ip != NULL ? a->ip : "");
}

/* Ports without a host port (0) need nothing from the network. */
static json_t *port_mappings(const struct cni_attachment *a)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < a->n_ports && list != NULL; i++) {
        const struct cni_port_mapping *p = &a->ports[i];
        json_t *v;

        if (p->host_port <= 0)
            continue;
        v = json_pack("{s:i, s:i, s:s}", "hostPort", p->host_port, "containerPort", p->container_port,
                      "protocol", p->protocol);
        if (json_array_append_new(list, v) < 0 || !json_put_str(v, "hostIP", p->host_ip))
            return NULL;
    }
    return take_ptr(&list);
}

static int64_t burst_for(int64_t bits_per_second)
{
    int64_t burst = bits_per_second / CNI_BURST_PER_SECOND;

    return burst < CNI_BURST_MIN ? CNI_BURST_MIN : burst > CNI_BURST_MAX ? CNI_BURST_MAX : burst;
}

/* The plugin rejects a rate without a burst and vice versa. */
static bool put_rate(json_t *obj, const char *rate, const char *burst, int64_t bits)
{
    return bits <= 0 || (json_object_set_new(obj, rate, json_integer(bits)) == 0 &&
                         json_object_set_new(obj, burst, json_integer(burst_for(bits))) == 0);
}

static json_t *texts(const char *const *v)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; v != NULL && v[i] != NULL; i++)
        if (json_array_append_new(list, json_string(v[i])) < 0)
            return NULL;
    return take_ptr(&list);
}

/* [[{"subnet": "10.1.0.0/16"}], [{"subnet": "fd00::/64"}]] */
static json_t *ip_ranges(const struct cni_attachment *a)
{
    json_auto_t *sets = json_array();

    for (size_t i = 0; a->ip_ranges != NULL && a->ip_ranges[i] != NULL; i++)
        if (json_array_append_new(sets, json_pack("[{s:s}]", "subnet", a->ip_ranges[i])) < 0)
            return NULL;
    return take_ptr(&sets);
}

static json_t *dns(const struct cni_attachment *a)
{
    if (a->dns_servers == NULL && a->dns_searches == NULL && a->dns_options == NULL)
        return json_object();
    return json_pack("{s:o, s:o, s:o}", "servers", texts(a->dns_servers), "searches", texts(a->dns_searches),
                     "options", texts(a->dns_options));
}

static json_t *annotations(const struct cni_attachment *a)
{
    json_auto_t *map = json_object();

    for (size_t i = 0; i < a->n_annotations; i++)
        if (json_object_set_new(map, a->annotations[i].key, json_string(a->annotations[i].value)) < 0)
            return NULL;
    return take_ptr(&map);
}

/* Plugins require a prefix length; that of a single address fits every network. */
static json_t *ips(const struct cni_attachment *a)
{
    str_auto cidr = NULL;

    if (a->ip == NULL)
        return json_array();
    cidr = str_printf("%s/%d", a->ip, strchr(a->ip, ':') != NULL ? 128 : 32);
    return cidr != NULL ? json_pack("[s]", cidr) : NULL;
}

/* Takes value; omits an empty one. */
static bool supply(json_t *all, const char *name, json_t *value)
{
    bool empty = json_is_array(value) ? json_array_size(value) == 0 : json_object_size(value) == 0;

    if (value == NULL)
        return false;
    if (!json_is_string(value) && empty) {
        json_decref(value);
        return true;
    }
    return json_object_set_new(all, name, value) == 0;
}

json_t *cni_attachment_capability_args(const struct cni_attachment *a)
{
    json_auto_t *all = json_object(), *bandwidth = json_object();

    if (all == NULL || bandwidth == NULL ||
        !put_rate(bandwidth, "ingressRate", "ingressBurst", a->ingress_bits) ||
        !put_rate(bandwidth, "egressRate", "egressBurst", a->egress_bits))
        return NULL;
    if (!supply(all, "portMappings", port_mappings(a)) || !supply(all, "bandwidth", json_incref(bandwidth)) ||
        !supply(all, "ipRanges", ip_ranges(a)) || !supply(all, "dns", dns(a)) ||
        !supply(all, "ips", ips(a)) || !supply(all, CNI_ANNOTATIONS, annotations(a)) ||
        !supply(all, "podAnnotations", annotations(a)))
        return NULL;
    if ((a->mac != NULL && !supply(all, "mac", json_string(a->mac))) ||
        (a->cgroup_path != NULL && !supply(all, "cgroupPath", json_string(a->cgroup_path))))
        return NULL;
    return take_ptr(&all);
}
