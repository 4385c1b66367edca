/*
 * config - the settings of `coracle run`: one table row each (flag, kind, place, default, help) feeds the
 * parser and --help. Flags have kubelet's names where kubelet has one.
 */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H
#include "base/error.h"

#include <stdbool.h>

#define CONFIG_LIST_MAX 32

struct config_list {
    char *v[CONFIG_LIST_MAX + 1]; /* NULL-terminated */
    unsigned n;
};

struct agent_config {
    bool ephemeral;
    char *manifests; /* --pod-manifest-path (staticPodPath) */
    char *root_dir, *state_dir, *run_dir;
    char *pod_logs_dir, *container_logs_dir;
    char *cni_conf_dir;
    struct config_list cni_bin_dirs;
    char *cgroup_root;
    char *runtime, *conmon; /* "": looked for on PATH */
    char *socket, *socket_group;
    char *node_name, *node_ip;
    struct config_list cluster_dns;
    struct config_list allowed_unsafe_sysctls;
    char *cluster_domain, *resolv_conf;
    char *max_pods;
    char *log_level, *log_format;
    char *libexec_dir; /* "": beside the program, then /usr/libexec/coracle */
    bool seccomp_default;
    unsigned max_pods_n;
};

/* Fills in *c from argv (argv[0] is "run"). ERR_INVALID: what is wrong with which flag. *ret_help: --help was
 * asked for. */
enum err_code config_parse(struct agent_config *c, int argc, char **argv, bool *ret_help,
                           struct err *e) MUST_CHECK;
void config_help(void); /* on standard output */
void config_done(struct agent_config *c);
#endif
