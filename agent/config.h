/*
 * config - the settings of `coracle run`: one table row each (flag, kind, place, default, help) feeds the
 * parser and --help. Flags have kubelet's names where kubelet has one.
 */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_LIST_MAX 32
#define CONFIG_SHUTDOWN_PRIORITIES_MAX 32

struct config_list {
    char *v[CONFIG_LIST_MAX + 1]; /* NULL-terminated */
    unsigned n;
};

struct config_shutdown_priority { /* of shutdownGracePeriodByPodPriority; sorted by priority, lowest first */
    int32_t priority;
    uint64_t grace_ms;
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
    /*
     * Graceful node shutdown. grace_ms is the whole (shutdownGracePeriod), the last critical_ms of it are for
     * critical pods (shutdownGracePeriodCriticalPods, never more than the whole). Both 0 and no priorities:
     * none. With priorities both are 0: kubelet lets only one of the two ways be used.
     */
    uint64_t shutdown_grace_ms, shutdown_critical_ms;
    struct config_shutdown_priority shutdown_priorities[CONFIG_SHUTDOWN_PRIORITIES_MAX];
    unsigned n_shutdown_priorities;
};

/* Fills in *c from argv (argv[0] is "run"). ERR_INVALID: what is wrong with which flag. *ret_help: --help was
 * asked for. */
enum err_code config_parse(struct agent_config *c, int argc, char **argv, bool *ret_help,
                           struct err *e) MUST_CHECK;
void config_help(void); /* on standard output */
void config_done(struct agent_config *c);
#endif
