/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config - the settings of `coracle run`, from where kubelet takes them and with kubelet's precedence:
 *
 *     defaults < --config FILE < --config-dir DIR (*.conf, also in folders below, in the order of their
 * names) < flags
 *
 * A file holds a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) as it is and, as a further document, a
 * CoracleConfiguration (coracle.dev/v1) with what kubelet has no key for.  A drop-in is merged as kubelet
 * does it (RFC 7386): mappings are merged key by key, null takes a value away, everything else replaces.
 *
 * Every key and every flag is one row of the tables in keys_*.c: it works, or it is accepted and a warning
 * says why nothing is done about it.  A value that equals what is done anyway gives no warning.  What is
 * unknown or wrong is one error with file, line and the key's path.
 *
 * Blocking (reads files).  Any thread, no globals.
 */
#ifndef AGENT_CONFIG_CONFIG_H
#define AGENT_CONFIG_CONFIG_H
#include "agent/api/node_resources.h"
#include "agent/api/types.h"
#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define CONFIG_FILE "/etc/coracle/config.yaml" /* read where no --config is given, if it is there */
#define CONFIG_LIST_MAX 32
#define CONFIG_SHUTDOWN_PRIORITIES_MAX 32
#define CONFIG_PODS_MAX 1000 /* of one node; a larger maxPods is taken as this, with a warning */

struct config_list {
    char *v[CONFIG_LIST_MAX + 1]; /* NULL-terminated */
    unsigned n;
};

struct config_shutdown_priority { /* of shutdownGracePeriodByPodPriority; sorted by priority, lowest first */
    int32_t priority;
    uint64_t grace_ms;
};

struct config_state;

/* Texts are never NULL; "" stands for not given. */
struct agent_config {
    struct config_state *state; /* every setting with its origin: below */
    bool ephemeral;
    char *manifests; /* --pod-manifest-path (staticPodPath) */
    char *root_dir, *state_dir, *run_dir;
    char *pod_logs_dir, *container_logs_dir;
    int64_t log_max_bytes; /* of one file of a container's log */
    unsigned log_max_files;
    char *cni_conf_dir;
    struct config_list cni_bin_dirs;
    char *cgroup_root;
    char *runtime, *conmon; /* "": looked for on PATH */
    char *socket, *socket_group;
    char *registry_auth_file, *registries_conf; /* the latter "": the host's */
    char *node_name, *node_ip;                  /* node_ip: the first one given */
    struct api_kvs node_labels;
    struct api_taint *node_taints; /* registerWithTaints */
    size_t n_node_taints;
    struct config_list cluster_dns;
    struct config_list allowed_unsafe_sysctls;
    char *cluster_domain, *resolv_conf;
    char *pod_cidr;               /* "10.1.0.0/16,fd00::/64" */
    char *log_level, *log_format; /* logging.verbosity and logging.format are in them already */
    char *libexec_dir;            /* "": beside the program, then its ../libexec/coracle */
    bool seccomp_default;
    unsigned max_pods_n;    /* podsPerCore is in it already */
    int64_t pod_pids_limit; /* -1: none */
    bool local_limits;      /* of local storage are enforced */
    bool cpu_cfs_quota;
    uint64_t cpu_cfs_period_us;
    uint64_t backoff_max_ms;              /* of a container that crashes */
    unsigned image_gc_high, image_gc_low; /* percent of the disk */
    uint64_t image_min_age_ms, image_max_age_ms;
    char *image_verify; /* imagePullCredentialsVerificationPolicy */
    struct config_list image_verify_not;
    unsigned pulls_max;              /* images brought at a time; 0: the store's own number */
    unsigned pulls_per_registry_max; /* likewise */
    uint64_t pull_stall_ms, image_max_bytes;
    struct api_node_resources resources;
    char *system_reserved_cgroup, *kube_reserved_cgroup; /* "": none */
    bool fail_swap_on, fail_cgroup_v1; /* asked for explicitly: do not start on such a node */
    /*
     * Graceful node shutdown. grace_ms is the whole (shutdownGracePeriod), the last critical_ms of it are for
     * critical pods (shutdownGracePeriodCriticalPods, never more than the whole). Both 0 and no priorities:
     * none. With priorities both are 0: kubelet lets only one of the two ways be used.
     */
    uint64_t shutdown_grace_ms, shutdown_critical_ms;
    struct config_shutdown_priority shutdown_priorities[CONFIG_SHUTDOWN_PRIORITIES_MAX];
    unsigned n_shutdown_priorities;
};

/* Fills in *c, which is { 0 }, from argv (argv[0] is "run") and the files it names. ERR_INVALID: what is
 * wrong with which flag or key. *ret_help: --help was asked for. config_done() is due in any case. */
enum err_code config_parse(struct agent_config *c, int argc, char **argv, bool *ret_help,
                           struct err *e) MUST_CHECK;
/* After that: everything that is wrong in the file which it stopped at, the first being its error; how many.
 */
size_t config_problems(const struct agent_config *c, void (*fn)(const char *text, void *arg), void *arg);
/* The command line alone: ERR_INVALID: a word that is no flag, or a value that its flag does not take. */
enum err_code config_check_words(int argc, char **argv, struct err *e) MUST_CHECK;
void config_help(void); /* on standard output */

/* One setting as manual pages and completion tell of it. */
struct config_documented {
    const char *kind, *key; /* of the document that the key stands in; NULL: only a flag */
    const char *flag;       /* without dashes; NULL: none */
    const char *value;      /* what stands for its value, "" for a switch */
    const char *otherwise;  /* the default; NULL: not set */
    const char *words;      /* "a|b": no other value; NULL: others */
    const char *help;       /* NULL: a flag without effect */
    const char *why;        /* not acted on, for this reason; NULL: it works */
    bool later;             /* not acted on yet */
    bool live;              /* taken over by SIGHUP */
};
void config_documented(void (*fn)(const struct config_documented *s, void *arg), void *arg);
void config_done(struct agent_config *c);

/* What a setting is now, its default included; borrowed; NULL: it is not set. For what has no field above. */
const json_t *config_value(const struct agent_config *c, const char *key);

/* Settings that are accepted but not acted on, each once. Borrowed during fn. */
struct config_warning {
    const char *setting; /* "evictionHard", "--kubeconfig" */
    const char *value;   /* as JSON */
    const char *from;    /* "/etc/coracle/config.yaml:12", "--eviction-hard" */
    const char *why;
};
void config_warnings(const struct agent_config *c, void (*fn)(const struct config_warning *w, void *arg),
                     void *arg);

/*
 * Everything, as the status socket shows it; a new reference, NULL: no memory:
 * {"kubeletconfig": {...}, "coracleconfig": {...}, "sources": {"maxPods": "--max-pods", ...},
 *  "warnings": [{"setting", "value", "from", "why"}]}
 */
json_t *config_json(const struct agent_config *c);
/* The same as two YAML documents with the origin of each value beside it, from config_json()'s value. */
void config_yaml(const json_t *configz, struct buf *out);
/* The commented sample file: every key, its meaning and its default. */
void config_sample(struct buf *out);

/*
 * Takes over from `next` what may change while the agent runs; `next` gets what is not needed any more
 * (config_done() it). changed(setting, live) for each setting that differs; live false: it keeps its old
 * value until a restart.
 */
void config_take(struct agent_config *c, struct agent_config *next,
                 void (*changed)(const char *setting, bool live, void *arg), void *arg);
#endif
