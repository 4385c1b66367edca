/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's hosts, hostname and resolv.conf; texts are kubelet's (pkg/kubelet/kubelet_pods.go). */
#include "agent/pod/sandbox/files.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/resolv.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <string.h>

#define RESOLV_MAX (10 * 1024 * 1024)
#define HOSTS_MAX (1024 * 1024)

void files_hostname_text(const struct api_pod *pod, char ret[65])
{
    const struct api_pod_spec *s = &pod->spec;
    size_t n;

    if (s->hostname_override != NULL) {
        snprintf(ret, 65, "%s", s->hostname_override);
        return;
    }
    snprintf(ret, 64, "%s", s->hostname != NULL ? s->hostname : pod->meta.name);
    for (n = strlen(ret); n > 0 && (ret[n - 1] == '-' || ret[n - 1] == '.'); n--)
        ret[n - 1] = '\0';
}

static bool domain_of(const struct api_pod *pod, const char *cluster_domain, struct buf *out)
{
    if (pod->spec.subdomain == NULL || pod->spec.hostname_override != NULL)
        return false;
    buf_addf(out, "%s.%s.svc%s%s", pod->spec.subdomain, pod->meta.namespace,
             cluster_domain[0] != '\0' ? "." : "", cluster_domain);
    return true;
}

void files_hosts_text(const struct api_pod *pod, const char *hostname, const char *cluster_domain,
                      const char *const *ips, size_t n_ips, const char *host_file, struct buf *out)
{
    const struct api_pod_spec *s = &pod->spec;
    buf_auto domain = BUF_INIT(1024);

    if (s->host_network) {
        buf_adds(out, "# Kubernetes-managed hosts file (host network).\n");
        buf_adds(out, host_file != NULL ? host_file : "");
    } else {
        buf_adds(out, "# Kubernetes-managed hosts file.\n"
                      "127.0.0.1\tlocalhost\n"
                      "::1\tlocalhost ip6-localhost ip6-loopback\n"
                      "fe00::0\tip6-localnet\n"
                      "fe00::0\tip6-mcastprefix\n"
                      "fe00::1\tip6-allnodes\n"
                      "fe00::2\tip6-allrouters\n");
        domain_of(pod, cluster_domain, &domain);
        for (size_t i = 0; i < n_ips; i++) {
            if (domain.n > 0)
                buf_addf(out, "%s\t%s.%s\t%s\n", ips[i], hostname, domain.p, hostname);
            else
                buf_addf(out, "%s\t%s\n", ips[i], hostname);
        }
    }
    if (s->n_host_aliases == 0)
        return;
    buf_adds(out, "\n# Entries added by HostAliases.\n");
    for (size_t i = 0; i < s->n_host_aliases; i++) {
        buf_adds(out, s->host_aliases[i].ip);
        for (size_t j = 0; j < s->host_aliases[i].hostnames.n; j++)
            buf_addf(out, "\t%s", s->host_aliases[i].hostnames.v[j]);
        buf_addc(out, '\n');
    }
}

/* ---- on disk ---- */

const char *files_hostname(const struct pod *p)
{
    return sandbox_of(p)->hostname;
}

enum err_code files_path(const struct pod *p, const char *name, char *ret, size_t size, struct err *e)
{
    int n =
        snprintf(ret, size, "%s/pods/%s%s%s", p->node->o.root_dir, p->uid, name[0] != '\0' ? "/" : "", name);

    if (n < 0 || (size_t)n >= size)
        return err_set(e, ERR_INVALID, "path of pod %s is too long", p->uid);
    return ERR_OK;
}

static enum err_code pod_files_replace(const struct pod *p, const char *name, const struct buf *text,
                                       struct err *e)
{
    char path[512];

    if (buf_check(text, e) != ERR_OK || files_path(p, name, path, sizeof(path), e) != ERR_OK)
        return e->code;
    return fs_replace_at(AT_FDCWD, path, text->p, text->n, 0644, false, e);
}

/* In place: containers have the inode mounted. */
static enum err_code rewrite(const char *path, const char *text, size_t n, struct err *e)
{
    fd_auto fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (fd < 0)
        return err_sys(e, errno, "open %s", path);
    if (fchmod(fd, 0644) != 0 || pwrite(fd, text, n, 0) != (ssize_t)n || ftruncate(fd, (off_t)n) != 0)
        return err_sys(e, errno, "write %s", path);
    return ERR_OK;
}

enum err_code files_name_host(struct pod *p, struct err *e)
{
    struct sandbox *box = sandbox_of(p);

    files_hostname_text(p->api, box->hostname);
    if (p->api->spec.hostname_as_fqdn && p->api->spec.subdomain != NULL &&
        p->api->spec.hostname_override == NULL) {
        buf_auto fqdn = BUF_INIT(1024);
        buf_addf(&fqdn, "%s.", box->hostname);
        domain_of(p->api, p->node->o.cluster_domain, &fqdn);
        if (fqdn.n > 64)
            return err_set(e, ERR_INVALID,
                           "failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too "
                           "long (64 characters "
                           "is the max, %zu characters requested)",
                           fqdn.p, fqdn.n);
        snprintf(box->hostname, sizeof(box->hostname), "%s", fqdn.p);
    }
    if (p->api->spec.host_network) /* with the host's network a pod has the host's name, too */
        gethostname(box->hostname, sizeof(box->hostname) - 1);
    return ERR_OK;
}

/* kubelet reports both events for each such pod. The pod's own event is only for those that certainly
 * requested it: ClusterFirst is every pod's default, and appears in saved manifests. */
static void tell_no_cluster_dns(struct pod *p)
{
    static const char text[] =
        "the node does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" "
        "policy. Falling back to \"Default\" policy.";

    if (!sandbox_node(p->node)->told_no_cluster_dns)
        node_event(p->node, true, "MissingClusterDNS", text);
    sandbox_node(p->node)->told_no_cluster_dns = true;
    if (str_eq(p->api->spec.dns_policy, "ClusterFirstWithHostNet"))
        pod_event(p, NULL, true, "MissingClusterDNS", "pod: \"%s_%s(%s)\". %s", p->api->meta.name,
                  p->api->meta.namespace, p->uid, text);
}

static enum err_code write_resolv(struct pod *p, struct err *e)
{
    const struct node_options *o = &p->node->o;
    struct resolv_node node = { .cluster_dns = o->cluster_dns,
                                .cluster_domain = o->cluster_domain,
                                .ipv6 = o->node_ip != NULL && strchr(o->node_ip, ':') != NULL };
    struct resolv_warnings warnings = RESOLV_WARNINGS_INIT;
    buf_auto text = BUF_INIT(HOSTS_MAX);
    str_auto host = NULL;

    if (o->resolv_conf[0] != '\0') {
        /* kubelet fails without the file; a standalone node may well have none. */
        if (fs_read_at(AT_FDCWD, o->resolv_conf, RESOLV_MAX, &host, NULL, e) != ERR_OK) {
            if (e->code != ERR_NOT_FOUND)
                return e->code;
            *e = (struct err){ 0 };
        }
        node.file = host != NULL ? host : "";
    }
    resolv_text(p->api, &node, &text, &warnings);
    if (warnings.servers.n > 0)
        pod_event(p, NULL, true, "DNSConfigForming", "%s", warnings.servers.p);
    if (warnings.searches.n > 0)
        pod_event(p, NULL, true, "DNSConfigForming", "%s", warnings.searches.p);
    if (warnings.no_cluster_dns)
        tell_no_cluster_dns(p);
    buf_done(&warnings.servers);
    buf_done(&warnings.searches);
    return pod_files_replace(p, "resolv.conf", &text, e);
}

enum err_code files_write_static(struct pod *p, struct err *e)
{
    buf_auto text = BUF_INIT(1024);
    struct presence found;
    char path[512];

    if (files_name_host(p, e) != ERR_OK)
        return e->code;
    if (fs_mkdirs(p->node->o.root_dir, 0755, e) != ERR_OK ||
        files_path(p, "", path, sizeof(path), e) != ERR_OK || fs_mkdirs(path, 0750, e) != ERR_OK)
        return e->code;

    buf_addf(&text, "%s\n", sandbox_of(p)->hostname);
    if (pod_files_replace(p, "hostname", &text, e) != ERR_OK || write_resolv(p, e) != ERR_OK)
        return e->code;

    if (files_path(p, FILES_HOSTS, path, sizeof(path), e) != ERR_OK)
        return e->code;
    found = fs_look_at(AT_FDCWD, path, NULL, e);
    if (presence_is_unknown(found))
        return e->code; /* it may be that of a pod that runs */
    return presence_is_absent(found) ? rewrite(path, "", 0, e) : ERR_OK;
}

enum err_code files_write_hosts(struct pod *p, const char *const *ips, size_t n_ips, struct err *e)
{
    buf_auto text = BUF_INIT(HOSTS_MAX + 65536);
    str_auto host = NULL;
    char path[512], name[65];

    if (p->api->spec.host_network &&
        fs_read_at(AT_FDCWD, "/etc/hosts", HOSTS_MAX, &host, NULL, e) != ERR_OK) {
        if (e->code != ERR_NOT_FOUND)
            return e->code;
        *e = (struct err){ 0 };
    }
    files_hostname_text(p->api, name);
    files_hosts_text(p->api, name, p->node->o.cluster_domain, ips, n_ips, host, &text);
    if (buf_check(&text, e) != ERR_OK || files_path(p, FILES_HOSTS, path, sizeof(path), e) != ERR_OK)
        return e->code;
    return rewrite(path, text.p, text.n, e);
}
