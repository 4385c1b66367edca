/* The pod's hosts, hostname and resolv.conf; texts and limits are kubelet's (pkg/kubelet/kubelet_pods.go,
 * network/dns). */
#include "agent/pod/files.h"
#include "base/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <string.h>

#define RESOLV_MAX (10 * 1024 * 1024)
#define HOSTS_MAX (1024 * 1024)
#define NAMESERVERS_MAX 3
#define SEARCHES_MAX 32
#define SEARCH_LENGTH_MAX 2048
#define SEARCH_ONE_MAX 253

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

/* ---- resolv.conf ----------------------------------------------------------------------------------- */

struct words {
    char v[64][SEARCH_LENGTH_MAX / 8 + 1]; /* longer words than 256 are not DNS names: left out */
    size_t n;
};

static void add_word(struct words *w, const char *text, size_t n)
{
    if (n == 0 || n >= sizeof(w->v[0]) || w->n >= ARRAY_LEN(w->v))
        return;
    for (size_t i = 0; i < w->n; i++)
        if (strlen(w->v[i]) == n && memcmp(w->v[i], text, n) == 0)
            return;
    memcpy(w->v[w->n], text, n);
    w->v[w->n++][n] = '\0';
}

static void add_option(struct words *w, const char *name, size_t name_n, const char *value)
{
    char text[256];
    size_t i;

    snprintf(text, sizeof(text), "%.*s%s%s", (int)name_n, name, value != NULL ? ":" : "",
             value != NULL ? value : "");
    for (i = 0; i < w->n; i++) /* by name: the later one wins */
        if (strncmp(w->v[i], name, name_n) == 0 && (w->v[i][name_n] == ':' || w->v[i][name_n] == '\0'))
            break;
    if (i == w->n) {
        add_word(w, text, strlen(text));
        return;
    }
    snprintf(w->v[i], sizeof(w->v[i]), "%.256s", text);
}

struct resolv {
    struct words servers, searches, options;
};

static void parse_resolv(const char *text, struct resolv *r)
{
    const char *line = text;

    while (*line != '\0') {
        size_t n = strcspn(line, "\n");
        const char *p = line, *end = line + n;
        const char *word[80];
        size_t len[80], words = 0;

        while (p < end && words < ARRAY_LEN(word)) {
            size_t k = 0;
            while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
                p++;
            while (p + k < end && p[k] != ' ' && p[k] != '\t' && p[k] != '\r')
                k++;
            if (k > 0) {
                word[words] = p;
                len[words++] = k;
            }
            p += k;
        }
        if (words > 1 && word[0][0] != '#' && word[0][0] != ';') {
            if (len[0] == 10 && memcmp(word[0], "nameserver", 10) == 0) {
                add_word(&r->servers, word[1], len[1]);
            } else if (len[0] == 6 && memcmp(word[0], "search", 6) == 0) {
                r->searches.n = 0; /* the last search line wins */
                for (size_t i = 1; i < words; i++) {
                    size_t k = len[i] > 1 && word[i][len[i] - 1] == '.' ? len[i] - 1 : len[i];
                    if (k != 1 || word[i][0] != '.')
                        add_word(&r->searches, word[i], k);
                }
            } else if (len[0] == 7 && memcmp(word[0], "options", 7) == 0) {
                for (size_t i = 1; i < words; i++)
                    add_word(&r->options, word[i], len[i]);
            }
        }
        line += n + (line[n] == '\n');
    }
}

void files_resolv_text(const struct api_pod *pod, const struct files_dns *dns, struct buf *out, bool *ret_cut)
{
    const struct api_pod_spec *s = &pod->spec;
    bool cluster = str_eq(s->dns_policy, "ClusterFirstWithHostNet") ||
                   (str_eq(s->dns_policy, "ClusterFirst") && !s->host_network);
    struct resolv *host = calloc(1, sizeof(*host)), *r = calloc(1, sizeof(*r));
    size_t joined = 0, kept = 0;

    *ret_cut = false;
    if (host == NULL || r == NULL) {
        out->failed = true;
        goto done;
    }
    parse_resolv(dns->host_resolv, host);
    if (str_eq(s->dns_policy, "None")) {
        /* only what dnsConfig says */
    } else if (cluster && dns->cluster_dns != NULL && dns->cluster_dns[0] != NULL) {
        for (size_t i = 0; dns->cluster_dns[i] != NULL; i++)
            add_word(&r->servers, dns->cluster_dns[i], strlen(dns->cluster_dns[i]));
        if (dns->cluster_domain[0] != '\0') {
            char text[512];
            snprintf(text, sizeof(text), "%s.svc.%s", pod->meta.namespace, dns->cluster_domain);
            add_word(&r->searches, text, strlen(text));
            snprintf(text, sizeof(text), "svc.%s", dns->cluster_domain);
            add_word(&r->searches, text, strlen(text));
            add_word(&r->searches, dns->cluster_domain, strlen(dns->cluster_domain));
        }
        for (size_t i = 0; i < host->searches.n; i++)
            add_word(&r->searches, host->searches.v[i], strlen(host->searches.v[i]));
        add_word(&r->options, "ndots:5", 7);
    } else {
        *r = *host; /* also ClusterFirst where no cluster DNS is configured: the usual case without a cluster
                     */
    }
    for (size_t i = 0; i < s->dns_nameservers.n; i++)
        add_word(&r->servers, s->dns_nameservers.v[i], strlen(s->dns_nameservers.v[i]));
    for (size_t i = 0; i < s->dns_searches.n; i++)
        add_word(&r->searches, s->dns_searches.v[i], strlen(s->dns_searches.v[i]));
    for (size_t i = 0; i < s->n_dns_options; i++)
        add_option(&r->options, s->dns_options[i].name, strlen(s->dns_options[i].name),
                   s->dns_options[i].value);

    for (size_t i = 0; i < r->searches.n; i++) {
        size_t n = strlen(r->searches.v[i]);
        if (n > SEARCH_ONE_MAX || kept == SEARCHES_MAX || joined + n + (kept > 0) > SEARCH_LENGTH_MAX) {
            *ret_cut = true;
            continue;
        }
        buf_addf(out, "%s%s", kept == 0 ? "search " : " ", r->searches.v[i]);
        joined += n + (kept > 0);
        kept++;
    }
    if (kept > 0)
        buf_addc(out, '\n');
    for (size_t i = 0; i < r->servers.n; i++) {
        if (i == NAMESERVERS_MAX) {
            *ret_cut = true;
            break;
        }
        buf_addf(out, "nameserver %s\n", r->servers.v[i]);
    }
    for (size_t i = 0; i < r->options.n; i++)
        buf_addf(out, "%s%s%s", i == 0 ? "options " : " ", r->options.v[i],
                 i + 1 == r->options.n ? "\n" : "");
done:
    free(host);
    free(r);
}

/* ---- on disk ------------------------------------------------------------------------------------------ */

const char *files_hostname(const struct pod *p)
{
    return p->hostname;
}

enum err_code files_path(const struct pod *p, const char *name, char *ret, size_t size, struct err *e)
{
    int n =
        snprintf(ret, size, "%s/pods/%s%s%s", p->node->o.root_dir, p->uid, name[0] != '\0' ? "/" : "", name);

    if (n < 0 || (size_t)n >= size)
        return err_set(e, ERR_INVALID, "path of pod %s is too long", p->uid);
    return ERR_OK;
}

static enum err_code replace(const struct pod *p, const char *name, const struct buf *text, struct err *e)
{
    char path[512];

    if (buf_check(text, e) != ERR_OK || files_path(p, name, path, sizeof(path), e) != ERR_OK)
        return e->code;
    return fs_replace_at(AT_FDCWD, path, text->p, text->n, 0644, false, e);
}

/* In place: containers hold the inode. */
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
    files_hostname_text(p->api, p->hostname);
    if (p->api->spec.hostname_as_fqdn && p->api->spec.subdomain != NULL &&
        p->api->spec.hostname_override == NULL) {
        buf_auto fqdn = BUF_INIT(1024);
        buf_addf(&fqdn, "%s.", p->hostname);
        domain_of(p->api, p->node->o.cluster_domain, &fqdn);
        if (fqdn.n > 64)
            return err_set(e, ERR_INVALID,
                           "failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too "
                           "long (64 characters "
                           "is the max, %zu characters requested)",
                           fqdn.p, fqdn.n);
        snprintf(p->hostname, sizeof(p->hostname), "%s", fqdn.p);
    }
    if (p->api->spec.host_network) /* with the host's network a pod has the host's name, too */
        gethostname(p->hostname, sizeof(p->hostname) - 1);
    return ERR_OK;
}

enum err_code files_write_static(struct pod *p, struct err *e)
{
    struct files_dns dns = { .cluster_dns = p->node->o.cluster_dns,
                             .cluster_domain = p->node->o.cluster_domain };
    buf_auto text = BUF_INIT(HOSTS_MAX);
    str_auto host = NULL;
    char path[512];
    bool cut;

    if (files_name_host(p, e) != ERR_OK)
        return e->code;
    if (fs_mkdirs(p->node->o.root_dir, 0755, e) != ERR_OK ||
        files_path(p, "", path, sizeof(path), e) != ERR_OK || fs_mkdirs(path, 0750, e) != ERR_OK)
        return e->code;

    buf_addf(&text, "%s\n", p->hostname);
    if (replace(p, "hostname", &text, e) != ERR_OK)
        return e->code;

    buf_reset(&text);
    if (p->node->o.resolv_conf[0] != '\0' &&
        fs_read_at(AT_FDCWD, p->node->o.resolv_conf, RESOLV_MAX, &host, NULL, e) != ERR_OK) {
        if (e->code != ERR_NOT_FOUND)
            return e->code;
        *e = (struct err){ 0 };
    }
    dns.host_resolv = host != NULL ? host : "";
    files_resolv_text(p->api, &dns, &text, &cut);
    if (cut)
        pod_event(p, NULL, true, "DNSConfigForming",
                  "Nameserver or search limits were exceeded, some entries have been omitted");
    if (replace(p, "resolv.conf", &text, e) != ERR_OK)
        return e->code;

    if (files_path(p, FILES_HOSTS, path, sizeof(path), e) != ERR_OK)
        return e->code;
    return access(path, F_OK) == 0 ? ERR_OK : rewrite(path, "", 0, e);
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
