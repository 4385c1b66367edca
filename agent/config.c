#include "agent/config.h"
#include "agent/pod/sysctls.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/scope.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum kind { FLAG, TEXT, PATH, LIST };

static const struct row {
    const char *flag;
    enum kind kind;
    size_t offset;
    const char *otherwise; /* default; NULL: empty */
    const char *value, *help;
} rows[] = {
#define ROW(field) offsetof(struct agent_config, field)
    { "ephemeral", FLAG, ROW(ephemeral), NULL, NULL,
      "at the end take down everything: pods, mounts, namespaces, cgroups, bridges, rules" },
    { "pod-manifest-path", PATH, ROW(manifests), "/etc/coracle/manifests", "DIR", "folder of manifests" },
    { "root-dir", PATH, ROW(root_dir), "/var/lib/kubelet", "DIR",
      "pods' volumes and files, laid out as kubelet's" },
    { "state-dir", PATH, ROW(state_dir), "/var/lib/coracle", "DIR",
      "images, writable layers, pod records, network results" },
    { "run-dir", PATH, ROW(run_dir), "/run/coracle", "DIR", "what may vanish at a reboot; a tmpfs" },
    { "pod-logs-dir", PATH, ROW(pod_logs_dir), "/var/log/pods", "DIR", "container logs in CRI format" },
    { "container-logs-dir", PATH, ROW(container_logs_dir), "/var/log/containers", "DIR",
      "links to the logs, for log shippers" },
    { "cni-conf-dir", PATH, ROW(cni_conf_dir), "/etc/cni/net.d", "DIR",
      "CNI network lists; the first one is used" },
    { "cni-bin-dir", LIST, ROW(cni_bin_dirs), "/opt/cni/bin,/usr/lib/cni", "DIR[,DIR]",
      "CNI plugins; the first hit wins" },
    { "cgroup-root", PATH, ROW(cgroup_root), "/", "PATH",
      "cgroup below which pods live (a delegated unit's, under systemd)" },
    { "runtime", TEXT, ROW(runtime), NULL, "PATH", "OCI runtime (default: crun, then runc, on PATH)" },
    { "conmon", TEXT, ROW(conmon), NULL, "PATH", "container supervisor (default: conmon on PATH)" },
    { "socket", TEXT, ROW(socket), NULL, "PATH", "status socket (default: <run-dir>/coracle.sock)" },
    { "socket-group", TEXT, ROW(socket_group), NULL, "GROUP",
      "group that may read on the socket (default: root only)" },
    { "hostname-override", TEXT, ROW(node_name), NULL, "NAME", "name of this node (default: the host name)" },
    { "node-ip", TEXT, ROW(node_ip), NULL, "IP",
      "address of this node (default: of the default route's interface)" },
    { "cluster-dns", LIST, ROW(cluster_dns), NULL, "IP[,IP]",
      "DNS servers of pods with dnsPolicy ClusterFirst" },
    { "cluster-domain", TEXT, ROW(cluster_domain), NULL, "DOMAIN", "DNS domain of pods" },
    { "resolv-conf", TEXT, ROW(resolv_conf), "/etc/resolv.conf", "FILE",
      "the node's resolver file; \"\" for none" },
    { "allowed-unsafe-sysctls", LIST, ROW(allowed_unsafe_sysctls), NULL, "NAME[,NAME]",
      "kernel settings that pods may have beside the safe ones; \"net.core.*\" for all of a kind" },
    { "max-pods", TEXT, ROW(max_pods), "110", "N", "pods that this node runs at most" },
    { "seccomp-default", FLAG, ROW(seccomp_default), NULL, NULL,
      "containers without a profile get RuntimeDefault" },
    { "log-level", TEXT, ROW(log_level), "info", "LEVEL", "debug, info, warn or error" },
    { "log-format", TEXT, ROW(log_format), NULL, "FORMAT",
      "text, json or journal (default: journal under systemd, else text)" },
    { "libexec-dir", TEXT, ROW(libexec_dir), NULL, "DIR",
      "where coracle-unpack and coracle-exec are (default: beside coracle, then /usr/libexec/coracle)" },
#undef ROW
};

static enum err_code set_text(char **at, const char *value, struct err *e)
{
    char *copy = strdup(value);

    if (copy == NULL)
        return err_nomem(e);
    free(*at);
    *at = copy;
    return ERR_OK;
}

static enum err_code set_list(struct config_list *l, const struct row *r, const char *value, struct err *e)
{
    str_auto copy = strdup(value);
    char *rest = copy, *item;

    if (copy == NULL)
        return err_nomem(e);
    while (l->n > 0)
        free(take_ptr(&l->v[--l->n]));
    while ((item = strsep(&rest, ",")) != NULL) {
        if (item[0] == '\0')
            continue;
        if (l->n == CONFIG_LIST_MAX)
            return err_set(e, ERR_INVALID, "--%s: more than %d values", r->flag, CONFIG_LIST_MAX);
        if ((l->v[l->n] = strdup(item)) == NULL)
            return err_nomem(e);
        l->n++;
    }
    return ERR_OK;
}

static enum err_code set(struct agent_config *c, const struct row *r, const char *value, struct err *e)
{
    void *at = (char *)c + r->offset;

    switch (r->kind) {
    case FLAG:
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return err_set(e, ERR_INVALID, "--%s: \"%s\" is neither true nor false", r->flag, value);
        *(bool *)at = value[0] == 't';
        return ERR_OK;
    case PATH: {
        size_t n = strlen(value);
        if (value[0] != '/' || strstr(value, "/../") != NULL || n > 200)
            return err_set(e, ERR_INVALID,
                           "--%s: \"%s\" is not an absolute path of at most 200 bytes without \"..\"",
                           r->flag, value);
        if (set_text(at, value, e) != ERR_OK)
            return e->code;
        while (n > 1 && (*(char **)at)[n - 1] == '/')
            (*(char **)at)[--n] = '\0';
        return ERR_OK;
    }
    case TEXT:
        return set_text(at, value, e);
    case LIST:
        return set_list(at, r, value, e);
    }
    return ERR_OK;
}

static const struct row *find(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strlen(rows[i].flag) == n && memcmp(rows[i].flag, name, n) == 0)
            return &rows[i];
    return NULL;
}

static enum err_code check(struct agent_config *c, struct err *e)
{
    uint64_t n;

    if (parse_u64(c->max_pods, 1, 1000, &n, "--max-pods", e) != ERR_OK)
        return e->code;
    c->max_pods_n = (unsigned)n;
    if (sysctls_check_patterns((const char *const *)c->allowed_unsafe_sysctls.v, e) != ERR_OK)
        return err_wrap(e, "--allowed-unsafe-sysctls");
    if (c->socket[0] == '\0') {
        str_auto path = str_printf("%s/coracle.sock", c->run_dir);
        if (path == NULL)
            return err_nomem(e);
        free(c->socket);
        c->socket = take_ptr(&path);
    }
    if (strlen(c->socket) > 100) /* sun_path, and a temporary name beside it */
        return err_set(e, ERR_INVALID, "--socket: \"%s\" is longer than 100 bytes", c->socket);
    if (strcmp(c->log_level, "debug") != 0 && strcmp(c->log_level, "info") != 0 &&
        strcmp(c->log_level, "warn") != 0 && strcmp(c->log_level, "error") != 0)
        return err_set(e, ERR_INVALID, "--log-level: \"%s\" is none of debug, info, warn, error",
                       c->log_level);
    if (c->log_format[0] != '\0' && strcmp(c->log_format, "text") != 0 &&
        strcmp(c->log_format, "json") != 0 && strcmp(c->log_format, "journal") != 0)
        return err_set(e, ERR_INVALID, "--log-format: \"%s\" is none of text, json, journal", c->log_format);
    return ERR_OK;
}

enum err_code config_parse(struct agent_config *c, int argc, char **argv, bool *ret_help, struct err *e)
{
    *ret_help = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].kind != FLAG &&
            set(c, &rows[i], rows[i].otherwise != NULL ? rows[i].otherwise : "", e) != ERR_OK)
            return e->code;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *value, *name = arg + 2;
        const struct row *r;
        size_t n;

        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            *ret_help = true;
            return ERR_OK;
        }
        if (strncmp(arg, "--", 2) != 0)
            return err_set(e, ERR_INVALID, "unexpected argument \"%s\"; see coracle run --help", arg);
        n = strcspn(name, "=");
        r = find(name, n);
        if (r == NULL)
            return err_set(e, ERR_INVALID, "unknown flag --%.*s; see coracle run --help", (int)n, name);
        if (name[n] == '=')
            value = name + n + 1;
        else if (r->kind == FLAG)
            value = "true";
        else if (i + 1 < argc)
            value = argv[++i];
        else
            return err_set(e, ERR_INVALID, "--%s needs a value (%s)", r->flag, r->value);
        if (set(c, r, value, e) != ERR_OK)
            return e->code;
    }
    return check(c, e);
}

void config_help(void)
{
    printf("Usage: coracle run [FLAG...]\n\nRuns the node agent in the foreground.\n\nFlags:\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char left[64];
        snprintf(left, sizeof(left), "--%s%s%s", rows[i].flag, rows[i].value != NULL ? " " : "",
                 rows[i].value != NULL ? rows[i].value : "");
        printf("  %-32s %s", left, rows[i].help);
        if (rows[i].otherwise != NULL)
            printf(" (default %s)", rows[i].otherwise);
        printf("\n");
    }
}

void config_done(struct agent_config *c)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        void *at = (char *)c + rows[i].offset;
        struct config_list *l = at;

        if (rows[i].kind == LIST)
            while (l->n > 0)
                free(l->v[--l->n]);
        else if (rows[i].kind != FLAG)
            free(*(char **)at);
    }
    *c = (struct agent_config){ 0 };
}
