/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config - the settings of `coracle run`, from the same sources as kubelet's and with the same precedence:
 *
 *     defaults < --config FILE < --config-dir DIR (*.conf, also in subfolders, sorted by name) < flags
 *
 * A file holds a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) and, as another document, a
 * CoracleConfiguration (coracle.dev/v1) for settings that kubelet does not have. A drop-in is merged as in
 * kubelet (RFC 7386): mappings key by key, null removes a value, everything else replaces.
 *
 * Every key and flag is a row of the tables in keys_*.c: it works, or it is accepted with a warning that has
 * the reason why it has no effect. A value equal to the actual behaviour causes no warning. Unknown keys and
 * invalid values are errors with file, line and the key's path.
 *
 * Blocking (reads files). Any thread, no globals.
 */
#ifndef AGENT_CONFIG_CONFIG_H
#define AGENT_CONFIG_CONFIG_H
#include "agent/api/node_resources.h"
#include "agent/api/types.h"
#include "agent/eviction/settings.h"
#include "agent/placement/settings.h"
#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define CONFIG_FILE "/etc/coracle/config.yaml" /* read if it exists and --config is not given */
#define CONFIG_LIST_MAX 32
#define CONFIG_SHUTDOWN_PRIORITIES_MAX 32
#define CONFIG_PODS_MAX 1000 /* per node; a larger maxPods is reduced to this, with a warning */

struct config_list {
    char *v[CONFIG_LIST_MAX + 1]; /* NULL-terminated */
    unsigned n;
};

struct config_shutdown_priority { /* of shutdownGracePeriodByPodPriority; sorted by priority, lowest first */
    int32_t priority;
    uint64_t grace_ms;
};

/* The node's HTTPS port; only on a node that joins a cluster. tlsCurvePreferences: config_value(). */
struct config_server {
    bool enabled;
    char *address;
    int64_t port, read_only_port; /* read_only_port 0: none */
    char *cert_file, *key_file;   /* tlsCertFile, tlsPrivateKeyFile; "": those of cert_dir */
    struct config_list ciphers;   /* Go's names; none: the default */
    char *min_version;            /* "VersionTLS12"; "": the default */
    uint64_t stream_idle_ms;      /* of an exec, attach or port-forward without traffic */
    char *client_ca_file;         /* "": client certificates are not accepted */
    bool token_webhook, anonymous, debugging;
    uint64_t token_ttl_ms;                  /* of an answer of TokenReview */
    char *authorization;                    /* "Webhook", "AlwaysAllow" */
    uint64_t allowed_ttl_ms, denied_ttl_ms; /* of an answer of SubjectAccessReview */
};

/* Settings of a node that joins a cluster. */
struct config_kube {
    char *kubeconfig; /* "": this node joins no cluster, and the other members have no effect */
    char *bootstrap_kubeconfig;
    char *cert_dir; /* never "" */
    bool rotate_client, rotate_server;
    bool register_node, register_schedulable;
    uint64_t update_ms, report_ms; /* node status: computed, sent unchanged */
    int64_t lease_seconds;
    int64_t max_images; /* in the node's status; -1: all */
    char *provider_id;
    int64_t event_qps, event_burst; /* event_qps 0: unlimited */
    int64_t api_qps, api_burst;     /* api_qps 0: client-go's default */
    struct config_server server;
};

struct config_state;

/* Texts are never NULL; "" means not given. */
struct agent_config {
    struct config_state *state; /* every setting with its origin */
    bool ephemeral;
    char *manifests; /* --pod-manifest-path (staticPodPath) */
    char *root_dir, *state_dir, *run_dir;
    char *volume_plugin_dir;
    char *pod_logs_dir, *container_logs_dir;
    int64_t log_max_bytes; /* per file of a container's log */
    unsigned log_max_files;
    char *cni_conf_dir;
    struct config_list cni_bin_dirs;
    char *cgroup_root;
    char *runtime, *conmon; /* "": searched in PATH */
    char *socket, *socket_group;
    char *local_api;                            /* "127.0.0.1:6443", "[::1]:6443"; "": none */
    char *provider_config, *provider_bin_dir;   /* of image credential providers; "": none */
    char *registry_auth_file, *registries_conf; /* registries_conf "": the host's */
    char *node_name, *node_ip;                  /* node_ip: the first one given */
    struct config_kube kube;
    struct api_kvs node_labels;
    struct api_taint *node_taints; /* registerWithTaints */
    size_t n_node_taints;
    struct config_list cluster_dns;
    struct config_list allowed_unsafe_sysctls;
    char *cluster_domain, *resolv_conf;
    char *pod_cidr;               /* "10.1.0.0/16,fd00::/64" */
    char *log_level, *log_format; /* includes logging.verbosity and logging.format */
    char *libexec_dir;            /* "": next to the program, then its ../libexec/coracle */
    bool seccomp_default;
    unsigned max_pods_n;    /* includes podsPerCore */
    int64_t pod_pids_limit; /* -1: none */
    bool local_limits;      /* limits of local storage are enforced */
    char *storage_limits;   /* "evict", "enforce" */
    bool cpu_cfs_quota;
    uint64_t cpu_cfs_period_us;
    uint64_t backoff_max_ms;              /* for a crashing container */
    unsigned image_gc_high, image_gc_low; /* percent of the disk */
    uint64_t image_min_age_ms, image_max_age_ms;
    char *image_verify; /* imagePullCredentialsVerificationPolicy */
    struct config_list image_verify_not;
    unsigned pulls_max;              /* concurrent pulls; 0: the store's default */
    unsigned pulls_per_registry_max; /* 0: the store's default */
    uint64_t pull_stall_ms, image_max_bytes;
    struct api_node_resources resources;
    struct ev_settings eviction;          /* without implied thresholds */
    uint64_t device_wait_ms;              /* 0: as in kubelet, pods do not wait for devices */
    struct api_counts extended_resources; /* extendedResources, sorted by name */
    char *device_dir;                     /* declarations of devices */
    struct config_list cdi_dirs;
    char *topology_policy, *topology_scope;              /* values of KubeletConfiguration */
    char *system_reserved_cgroup, *kube_reserved_cgroup; /* "": none */
    bool fail_swap_on, fail_cgroup_v1;                   /* set explicitly: refuse to start on such a node */
    /* Graceful node shutdown. grace_ms is the total (shutdownGracePeriod), of which the last critical_ms are
     * for critical pods (shutdownGracePeriodCriticalPods, at most the total). Both 0 and no priorities:
     * disabled. With priorities both are 0: kubelet allows only one of the two. */
    uint64_t shutdown_grace_ms, shutdown_critical_ms;
    struct config_shutdown_priority shutdown_priorities[CONFIG_SHUTDOWN_PRIORITIES_MAX];
    unsigned n_shutdown_priorities;
};

/* runtimeHandlers: names, and the program and options of each, as agent/runtime/container.h limits them. */
#define CONFIG_HANDLERS_MAX 30 /* crun and runc are added where they are installed */
#define CONFIG_HANDLER_OPTIONS_MAX 16
#define CONFIG_HANDLER_TEXT_MAX 200 /* bytes of a program's path or an option */

/* Fills in *c, which is { 0 }, from argv (argv[0] is "run") and the files it names. ERR_INVALID: the error of
 * a flag or key. *ret_help: --help was given. Always call config_done() afterwards. */
enum err_code config_parse(struct agent_config *c, int argc, char **argv, bool *ret_help,
                           struct err *e) MUST_CHECK;
/* After ERR_INVALID: calls fn with all problems of the rejected file, the first being the error; returns
 * their number. */
size_t config_problems(const struct agent_config *c, void (*fn)(const char *text, void *arg), void *arg);
/* Checks only the command line. ERR_INVALID: an unknown word, or an invalid value of a flag. */
enum err_code config_check_words(int argc, char **argv, struct err *e) MUST_CHECK;
void config_help(void); /* on standard output */

/* A setting, for manual pages and completion. */
struct config_documented {
    const char *kind, *key; /* of the key's document; NULL: flag only */
    const char *flag;       /* without dashes; NULL: none */
    const char *value;      /* the value's placeholder, "" for a switch */
    const char *otherwise;  /* the default; NULL: not set */
    const char *words;      /* "a|b": the only allowed values; may be NULL */
    const char *help;       /* NULL: a flag without effect */
    const char *why;        /* the reason why it has no effect; NULL: it works */
    bool later;             /* not supported yet */
    bool live;              /* reloaded by SIGHUP */
    bool joined;            /* acts only on a node that joins a cluster */
};
void config_documented(void (*fn)(const struct config_documented *s, void *arg), void *arg);
/* The settings of processors, memory and topology; they borrow from *c. ERR_INVALID: too many entries. */
enum err_code config_placement(const struct agent_config *c, struct pl_settings *ret,
                               struct err *e) MUST_CHECK;
void config_done(struct agent_config *c);

/* A setting's current value or default; borrowed; NULL if not set. For settings without a field above. */
const json_t *config_value(const struct agent_config *c, const char *key);

/* Settings that are accepted but have no effect, each listed once. Borrowed during fn. */
struct config_warning {
    const char *setting; /* "evictionHard", "--kubeconfig" */
    const char *value;   /* as JSON */
    const char *from;    /* "/etc/coracle/config.yaml:12", "--eviction-hard" */
    const char *why;
};
void config_warnings(const struct agent_config *c, void (*fn)(const struct config_warning *w, void *arg),
                     void *arg);

/* All settings, for the status socket; a new reference, NULL when out of memory: {"kubeletconfig": {...},
 * "coracleconfig": {...}, "sources": {"maxPods": "--max-pods", ...}, "withoutEffect": {"port": why, ...},
 * "warnings": [{"setting", "value", "from", "why"}]}. A warning concerns a given value that differs from the
 * actual behaviour; withoutEffect lists all keys that have no effect. */
json_t *config_json(const struct agent_config *c);
/* Converts config_json()'s value to two YAML documents with the origin of each value beside it. */
void config_yaml(const json_t *configz, struct buf *out);
/* The commented sample file: every key, its meaning and its default. */
void config_sample(struct buf *out);

/* Takes from `next` the settings that may change at runtime; `next` gets the obsolete values (call
 * config_done()). changed(setting, live) is called for each difference; live false: the old value applies
 * until a restart. */
void config_take(struct agent_config *c, struct agent_config *next,
                 void (*changed)(const char *setting, bool live, void *arg), void *arg);
#endif
