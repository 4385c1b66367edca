/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/net_attach.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/sandbox/files.h"
#include "agent/pod/sandbox/internal.h"
#include "base/files/fs.h"
#include "base/siphash.h"

#include <string.h>

#define RATE_MIN INT64_C(1000) /* 1k and 1P: kubelet's limits (pkg/util/bandwidth) */
#define RATE_MAX INT64_C(1000000000000000)
#define RESOLV_MAX (64 * 1024) /* our own file; its content has at most 2 KiB and options */
#define WORDS_MAX 64           /* of each kind in it: 3 servers, 32 domains, options */

struct words {
    const char *v[WORDS_MAX + 1];
    size_t n;
};

struct net_attach {
    struct cni_port_mapping *ports;
    struct cni_pair *annotations;
    struct words ranges, servers, searches, options;
    char *ranges_text, *resolv_text; /* the texts containing the words */
    char cgroup[512];
};

void net_attach_free(struct pod *p)
{
    struct net_attach *a = take_ptr(&sandbox_of(p)->net_attach);

    if (a == NULL)
        return;
    free(a->ports);
    free(a->annotations);
    free(a->ranges_text);
    free(a->resolv_text);
    free(a);
}

/* ---- the sandbox's id ---- */

void net_sandbox_tag(const char *state_dir, char ret[SANDBOX_TAG_DIGITS + 1])
{
    static const unsigned char key[SIPHASH_KEY_SIZE]; /* not secret: it only has to be distinct */
    str_auto machine = NULL;
    str_auto text = NULL;

    if (fs_read_at(AT_FDCWD, "/etc/machine-id", 256, &machine, NULL, ERR_IGNORED) != ERR_OK)
        machine = NULL;
    text = str_printf("%s%s", machine != NULL ? machine : "", state_dir);
    snprintf(ret, SANDBOX_TAG_DIGITS + 1, "%016llx",
             text != NULL ? (unsigned long long)siphash(key, text, strlen(text)) : 0);
}

void net_sandbox_id(const struct node *n, char ret[SANDBOX_ID_DIGITS + 1])
{
    const struct sandbox_node *part = sandbox_node(n);

    id_random_hex(ret, SANDBOX_ID_DIGITS);
    memcpy(ret, part->tag, strnlen(part->tag, SANDBOX_TAG_DIGITS));
}

/* ---- bandwidth ---- */

enum err_code net_bandwidth(const struct api_pod *pod, const char *annotation, int64_t *ret, struct err *e)
{
    const char *text = api_kvs_get(&pod->meta.annotations, annotation);
    struct quantity q;

    *ret = 0;
    if (text == NULL)
        return ERR_OK;
    if (quantity_parse(text, &q, e) != ERR_OK)
        return err_wrap(e, "annotation %s", annotation);
    if (quantity_value(&q) < RATE_MIN)
        return err_set(e, ERR_INVALID, "annotation %s: resource is unreasonably small (< 1kbit)", annotation);
    if (quantity_value(&q) > RATE_MAX)
        return err_set(e, ERR_INVALID, "annotation %s: resource is unreasonably large (> 1Pbit)", annotation);
    *ret = quantity_value(&q);
    return ERR_OK;
}

/* ---- ports ---- */

static const char *protocol_of(const struct api_port *port)
{
    return str_eq(port->protocol, "UDP") ? "udp" : str_eq(port->protocol, "SCTP") ? "sctp" : "tcp";
}

static bool has_mapping(const struct net_attach *a, size_t n, const struct cni_port_mapping *m)
{
    const char *ip = m->host_ip != NULL ? m->host_ip : "";

    for (size_t i = 0; i < n; i++) {
        const struct cni_port_mapping *o = &a->ports[i];
        if (o->host_port == m->host_port && o->container_port == m->container_port &&
            strcmp(o->protocol, m->protocol) == 0 && strcmp(o->host_ip != NULL ? o->host_ip : "", ip) == 0)
            return true;
    }
    return false;
}

/* Only regular containers' ports are mapped, as in kubelet. */
static enum err_code net_attach_add_ports(const struct pod *p, struct net_attach *a, size_t *ret_n,
                                          struct err *e)
{
    const struct api_pod_spec *spec = &p->api->spec;
    size_t n = 0, max = 0;

    for (size_t i = 0; i < spec->n_containers; i++)
        max += spec->containers[i].n_ports;
    a->ports = calloc(max + 1, sizeof(*a->ports));
    if (a->ports == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < spec->n_containers; i++)
        for (size_t j = 0; j < spec->containers[i].n_ports; j++) {
            const struct api_port *port = &spec->containers[i].ports[j];
            struct cni_port_mapping m = { .host_port = port->host_port,
                                          .container_port = port->container_port,
                                          .protocol = protocol_of(port),
                                          .host_ip = port->host_ip };
            if (m.host_port > 0 && !has_mapping(a, n, &m))
                a->ports[n++] = m;
        }
    *ret_n = n;
    return ERR_OK;
}

/* ---- other capabilities of plugins ---- */

static void net_attach_split(char *text, const char *separators, struct words *ret)
{
    char *rest = NULL;

    for (char *word = strtok_r(text, separators, &rest); word != NULL && ret->n < WORDS_MAX;
         word = strtok_r(NULL, separators, &rest))
        ret->v[ret->n++] = word;
}

/* From the pod's own resolv.conf, the result of its dnsPolicy and dnsConfig. */
static void add_dns(const struct pod *p, struct net_attach *a)
{
    char path[512], *rest = NULL;

    if (files_path(p, "resolv.conf", path, sizeof(path), ERR_IGNORED) != ERR_OK ||
        fs_read_at(AT_FDCWD, path, RESOLV_MAX, &a->resolv_text, NULL, ERR_IGNORED) != ERR_OK)
        return; /* a DEL whose files are gone: the cached arguments are used */
    for (char *line = strtok_r(a->resolv_text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (str_starts(line, "nameserver "))
            net_attach_split(line + strlen("nameserver "), " \t", &a->servers);
        else if (str_starts(line, "search "))
            net_attach_split(line + strlen("search "), " \t", &a->searches);
        else if (str_starts(line, "options "))
            net_attach_split(line + strlen("options "), " \t", &a->options);
    }
}

static enum err_code add_annotations(const struct pod *p, struct net_attach *a, struct err *e)
{
    const struct api_kvs *kvs = &p->api->meta.annotations;

    a->annotations = calloc(kvs->n + 1, sizeof(*a->annotations));
    if (a->annotations == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < kvs->n; i++)
        a->annotations[i] = (struct cni_pair){ kvs->v[i].key, kvs->v[i].value };
    return ERR_OK;
}

static enum err_code add_ranges(const struct pod *p, struct net_attach *a, struct err *e)
{
    const char *cidr = p->node->o.pod_cidr;

    if (cidr == NULL || cidr[0] == '\0')
        return ERR_OK;
    a->ranges_text = strdup(cidr);
    if (a->ranges_text == NULL)
        return err_nomem(e);
    net_attach_split(a->ranges_text, ", ", &a->ranges);
    return ERR_OK;
}

static const char *const *words_or_null(const struct words *w)
{
    return w->n > 0 ? w->v : NULL;
}

enum err_code net_attach_fill(struct pod *p, bool add, bool with_netns, struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    struct net_attach *a = calloc(1, sizeof(*a));
    int64_t ingress = 0, egress = 0;
    struct err passed_over = { 0 }, *said = add ? e : &passed_over;
    size_t n_ports = 0;

    net_attach_free(p);
    box->net_attach = a;
    if (a == NULL)
        return err_nomem(e);
    if ((net_bandwidth(p->api, "kubernetes.io/ingress-bandwidth", &ingress, said) != ERR_OK ||
         net_bandwidth(p->api, "kubernetes.io/egress-bandwidth", &egress, said) != ERR_OK) &&
        add)
        return e->code;
    if (net_attach_add_ports(p, a, &n_ports, e) != ERR_OK || add_annotations(p, a, e) != ERR_OK ||
        add_ranges(p, a, e) != ERR_OK ||
        (p->node->o.cgroups != NULL && resources_cgroup_path(p, a->cgroup, sizeof(a->cgroup), e) != ERR_OK))
        return e->code;
    add_dns(p, a);
    snprintf(box->netns_path, sizeof(box->netns_path), "%s/net", box->netns_dir);
    box->cni_att = (struct cni_attachment){
        .container_id = p->sandbox_id,
        .netns = with_netns ? box->netns_path : "",
        .ifname = POD_IFNAME,
        .pod_namespace = p->api->meta.namespace,
        .pod_name = p->api->meta.name,
        .pod_uid = p->uid,
        .ports = a->ports,
        .n_ports = n_ports,
        .ingress_bits = ingress,
        .egress_bits = egress,
        .ip_ranges = words_or_null(&a->ranges),
        .cgroup_path = a->cgroup[0] != '\0' ? a->cgroup : NULL,
        .dns_servers = words_or_null(&a->servers),
        .dns_searches = words_or_null(&a->searches),
        .dns_options = words_or_null(&a->options),
        .annotations = a->annotations,
        .n_annotations = p->api->meta.annotations.n,
        .ip = box->net_again_ip[0] != '\0' ? box->net_again_ip : NULL,
    };
    return ERR_OK;
}
