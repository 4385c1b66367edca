/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types - the object model: the parts of Pod, ConfigMap, Secret, PriorityClass and RuntimeClass that the
 * agent uses.
 *
 * Objects come from api_decode_*() (decode.h) defaulted and validated, live in one arena, are immutable and
 * reference-counted. Strings are NUL-terminated and owned by the object; an optional field that was not given
 * is NULL (pointers) or has its has_ flag false. Field names follow the API (snake_case). The full manifest,
 * as JSON with defaults filled in, is kept as text for people and for edits; fields that are not in these
 * structs are either refused or listed in `ignored` (see the schema tables and docs/pod-fields.md).
 */
#ifndef AGENT_API_TYPES_H
#define AGENT_API_TYPES_H
#include "agent/api/quantity.h"
#include "base/arena.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct api_strs {
    char **v;
    size_t n;
};

/* Where an object comes from. Objects of one source refer to objects of the same source only. */
enum api_origin { API_FROM_FOLDER, API_FROM_SERVER };

struct api_kv {
    char *key;
    char *value;
};

struct api_kvs { /* sorted by key, unique keys */
    struct api_kv *v;
    size_t n;
};

const char *api_kvs_get(const struct api_kvs *m, const char *key); /* NULL if absent */
void api_kvs_sort(struct api_kvs *m);                              /* by key */

struct api_meta {
    char *name;
    char *namespace; /* "default" when not given; NULL for cluster-scoped kinds */
    char *uid;       /* as given, or NULL */
    struct api_kvs labels;
    struct api_kvs annotations;
    int64_t generation;
    char *kept; /* JSON text (kept_meta.h) of members that the node ignores; NULL: none, or not from a file */
};

/* ---- resources ---- */
struct api_resource {
    char *name; /* cpu, memory, ephemeral-storage, hugepages-2Mi, example.com/thing */
    struct quantity amount;
};

struct api_resource_list {
    struct api_resource *v;
    size_t n;
};

/* NULL if absent */
const struct quantity *api_resource_get(const struct api_resource_list *l, const char *name);

struct api_resources {
    struct api_resource_list limits;
    struct api_resource_list requests; /* defaulted from limits */
};

/* ---- environment ---- */
struct api_key_ref { /* configMapKeyRef, secretKeyRef */
    char *name;
    char *key;
    bool optional;
};

struct api_field_ref {
    char *api_version;
    char *field_path;
};

struct api_resource_field_ref {
    char *container_name;    /* NULL: the container itself */
    char *resource;          /* limits.cpu, requests.memory, ... */
    struct quantity divisor; /* 0 means 1 */
};

struct api_file_key_ref { /* a variable from a file in an emptyDir */
    char *volume_name, *path, *key;
    bool optional;
};

struct api_env {
    char *name;
    char *value;                            /* "" when not given */
    struct api_key_ref *config_map_key_ref; /* at most one of these five */
    struct api_key_ref *secret_key_ref;
    struct api_field_ref *field_ref;
    struct api_resource_field_ref *resource_field_ref;
    struct api_file_key_ref *file_key_ref;
};

struct api_env_from {
    char *prefix;         /* may be NULL */
    char *config_map_ref; /* object name; exactly one of the two */
    char *secret_ref;
    bool optional;
};

/* ---- security ---- */
enum api_seccomp_type {
    API_SECCOMP_UNSET,
    API_SECCOMP_UNCONFINED,
    API_SECCOMP_RUNTIME_DEFAULT,
    API_SECCOMP_LOCALHOST
};

struct api_seccomp {
    enum api_seccomp_type type;
    char *localhost_profile;
};

struct api_apparmor {
    char *type; /* NULL, "Unconfined", "RuntimeDefault", "Localhost" */
    char *localhost_profile;
};

struct api_security { /* container level; pod level uses the common fields */
    bool has_run_as_user, has_run_as_group, has_run_as_non_root, has_privileged,
        has_allow_privilege_escalation, has_read_only_root_filesystem;
    int64_t run_as_user, run_as_group;
    bool run_as_non_root, privileged, allow_privilege_escalation, read_only_root_filesystem;
    struct api_seccomp seccomp;
    struct api_apparmor apparmor;
    struct api_strs caps_add, caps_drop; /* as written: "NET_ADMIN", "ALL" */
    char *proc_mount;                    /* NULL, "Default", "Unmasked" */
};

struct api_sysctl {
    char *name;
    char *value;
};
/* The name in Kubernetes' normal form: "net/ipv4/conf/eth0.1/x", whose separator is '/', becomes
 * "net.ipv4.conf.eth0/1.x"; others stay as they are. Truncated to `size`. */
void api_sysctl_with_dots(const char *name, char *ret, size_t size);

struct api_pod_security {
    bool has_run_as_user, has_run_as_group, has_run_as_non_root, has_fs_group;
    int64_t run_as_user, run_as_group, fs_group;
    char *fs_group_change_policy; /* "Always", "OnRootMismatch"; NULL: not given */
    bool run_as_non_root;
    struct api_seccomp seccomp;
    struct api_apparmor apparmor;
    int64_t *supplemental_groups;
    size_t n_supplemental_groups;
    char *supplemental_groups_policy; /* NULL, "Merge", "Strict" */
    struct api_sysctl *sysctls;
    size_t n_sysctls;
};

/* ---- probes and hooks ---- */
enum api_handler_kind {
    API_HANDLER_NONE,
    API_HANDLER_EXEC,
    API_HANDLER_HTTP,
    API_HANDLER_TCP,
    API_HANDLER_GRPC,
    API_HANDLER_SLEEP
};

struct api_handler {
    enum api_handler_kind kind;
    struct api_strs command; /* exec */
    char *host, *path, *scheme;
    char *port; /* number or port name, as text */
    struct api_kv *headers;
    size_t n_headers;
    char *grpc_service;
    int64_t sleep_seconds;
};

struct api_probe {
    struct api_handler handler;
    int32_t initial_delay_seconds, timeout_seconds, period_seconds, success_threshold, failure_threshold;
    bool has_termination_grace;
    int64_t termination_grace_seconds;
};

/* ---- containers ---- */
struct api_port {
    char *name; /* NULL: none */
    int32_t container_port;
    int32_t host_port; /* 0: none */
    char *protocol;    /* TCP, UDP, SCTP */
    char *host_ip;     /* NULL: any */
};

struct api_volume_mount {
    char *name;
    char *mount_path;
    char *sub_path;      /* NULL: none */
    char *sub_path_expr; /* NULL: none */
    bool read_only;
    char *mount_propagation;   /* NULL = None, "HostToContainer", "Bidirectional" */
    char *recursive_read_only; /* NULL = Disabled, "IfPossible", "Enabled" */
};

struct api_volume_device { /* a block device in the container */
    char *name;            /* of the volume */
    char *path;
};

enum api_restart_policy { API_RESTART_UNSET, API_RESTART_ALWAYS, API_RESTART_ON_FAILURE, API_RESTART_NEVER };
enum api_pull_policy { API_PULL_ALWAYS, API_PULL_IF_NOT_PRESENT, API_PULL_NEVER };

struct api_restart_rule {
    bool all;    /* RestartAllContainers; otherwise Restart */
    bool not_in; /* applies to every exit code except these */
    int64_t *exit_codes;
    size_t n_exit_codes;
};

enum api_resize_resource { API_RESIZE_CPU, API_RESIZE_MEMORY };
enum api_resize_restart { API_RESIZE_NOT_REQUIRED, API_RESIZE_RESTART_CONTAINER };

struct api_resize_policy {
    enum api_resize_resource resource;
    enum api_resize_restart restart;
};

struct api_container {
    char *name;
    char *image;
    enum api_pull_policy pull_policy;
    struct api_strs command, args;
    char *working_dir; /* NULL: the image's */
    struct api_port *ports;
    size_t n_ports;
    struct api_env_from *env_from;
    size_t n_env_from;
    struct api_env *env;
    size_t n_env;
    struct api_resources resources;
    struct api_volume_mount *mounts;
    size_t n_mounts;
    struct api_volume_device *devices;
    size_t n_devices;
    struct api_security security;
    /* UNSET: the pod's; ALWAYS on an init container makes it a sidecar */
    enum api_restart_policy restart_policy;
    struct api_restart_rule *restart_rules; /* precede the policy; the first match applies */
    size_t n_restart_rules;
    struct api_resize_policy *resize_policies;
    size_t n_resize_policies;
    char *termination_message_path;
    bool message_fallback_to_logs; /* terminationMessagePolicy: FallbackToLogsOnError */
    bool stdin_open, stdin_once, tty;
    struct api_probe *liveness, *readiness, *startup; /* NULL: none */
    struct api_handler *post_start, *pre_stop;        /* NULL: none */
    char *stop_signal;                                /* lifecycle.stopSignal, NULL: the image's */
    char *target; /* ephemeral: targetContainerName, whose processes it sees; NULL: none */
};

/* ---- volumes ---- */
struct api_item { /* items[] of configMap, secret, projected */
    char *key;
    char *path;
    int32_t mode; /* -1: the volume's default */
};

struct api_downward_item {
    char *path;
    int32_t mode; /* -1: default */
    struct api_field_ref *field_ref;
    struct api_resource_field_ref *resource_field_ref;
};

enum api_source_kind {
    API_SRC_CONFIG_MAP,
    API_SRC_SECRET,
    API_SRC_DOWNWARD,
    API_SRC_TOKEN,
    API_SRC_TRUST,
    API_SRC_CERTIFICATE
};

enum api_node_operator {
    API_NODE_IN,
    API_NODE_NOT_IN,
    API_NODE_EXISTS,
    API_NODE_ABSENT,
    API_NODE_GREATER,
    API_NODE_LESS
};

struct api_node_requirement { /* on a label, or (in fields of a node) on metadata.name */
    char *key;
    enum api_node_operator op;
    struct api_strs values;
};

struct api_label_selector { /* without requirements it selects everything */
    struct api_kvs labels;
    struct api_node_requirement *expressions;
    size_t n_expressions;
};

/* a source of a projected volume, or the single source of the other three kinds */
struct api_payload_source {
    enum api_source_kind kind;
    char *name; /* object name; of a clusterTrustBundle NULL if it is chosen by its signer */
    bool optional;
    struct api_item *items;
    size_t n_items;
    struct api_downward_item *downward;
    size_t n_downward;
    char *path; /* of a serviceAccountToken or clusterTrustBundle */
    char *token_audience;
    int64_t token_expiration_seconds;
    char *signer;                      /* clusterTrustBundle: all of this signer that `labels` selects */
    struct api_label_selector *labels; /* NULL: it selects nothing */
};

enum api_volume_kind {
    API_VOL_EMPTY_DIR,
    API_VOL_HOST_PATH,
    API_VOL_PAYLOAD, /* configMap, secret, downwardAPI, projected: sources[] */
    API_VOL_IMAGE,
    API_VOL_CSI,     /* inline: it lives as long as the pod */
    API_VOL_CLAIM,   /* persistentVolumeClaim, ephemeral */
    API_VOL_STORAGE, /* nfs, iscsi, fc, flexVolume */
};

struct api_storage;

struct api_volume {
    char *name;
    enum api_volume_kind kind;
    /* emptyDir */
    char *medium; /* "", "Memory", "HugePages", "HugePages-2Mi" */
    bool has_size_limit;
    struct quantity size_limit;
    /* hostPath */
    char *host_path;
    char *host_path_type; /* "" when not given */
    /* payload */
    struct api_payload_source *sources;
    size_t n_sources;
    int32_t default_mode;
    bool projected; /* declared as projected, rather than a single source */
    /* image */
    char *image_reference;
    enum api_pull_policy image_pull_policy;
    /* csi */
    char *csi_driver;
    bool csi_read_only;
    char *csi_fs_type; /* NULL: none given */
    struct api_kvs csi_attributes;
    char *csi_secret;            /* of nodePublishSecretRef; NULL: none */
    struct api_storage *storage; /* nfs, iscsi, fc, flexVolume: storage.h */
    /* persistentVolumeClaim, ephemeral */
    char *claim_name;               /* NULL: ephemeral, "<pod>-<volume>" (claim_name()) */
    bool ephemeral, claim_readonly; /* ephemeral: the claim is made and removed with the pod */
};

/* ---- pod ---- */
struct api_host_alias {
    char *ip;
    struct api_strs hostnames;
};

struct api_dns_option {
    char *name;
    char *value; /* NULL: none */
};

struct api_node_term { /* all requirements must match; an empty term matches no node */
    struct api_node_requirement *labels;
    size_t n_labels;
    struct api_node_requirement *fields;
    size_t n_fields;
};

struct api_taint {              /* of a node */
    char *key, *value, *effect; /* value: "" if none was given */
};

enum api_toleration_operator { API_TOLERATE_EQUAL, API_TOLERATE_EXISTS };

struct api_toleration {
    char *key; /* NULL: any, with API_TOLERATE_EXISTS */
    enum api_toleration_operator op;
    char *value;  /* NULL: "" */
    char *effect; /* NULL: any */
    bool has_seconds;
    int64_t seconds; /* how long it tolerates NoExecute; below 0: not at all */
};

struct api_readiness_gate {
    char *condition_type;
};

struct api_local_ref { /* LocalObjectReference */
    char *name;        /* NULL: none given */
};

struct api_pod_spec {
    struct api_container *containers; /* regular ones */
    size_t n_containers;
    struct api_container *init_containers;
    size_t n_init_containers;
    /* Added to a pod that exists, in any order (a patch may put new ones first). No manifest file has them.
     */
    struct api_container *ephemeral_containers;
    size_t n_ephemeral_containers;
    struct api_volume *volumes;
    size_t n_volumes;
    enum api_restart_policy restart_policy;
    int64_t termination_grace_seconds;
    bool has_active_deadline;
    int64_t active_deadline_seconds;
    char *dns_policy;
    struct api_strs dns_nameservers, dns_searches;
    struct api_dns_option *dns_options;
    size_t n_dns_options;
    char *service_account_name; /* NULL: none */
    char *node_name;            /* NULL: not given */
    bool host_network, host_pid, host_ipc, share_process_namespace;
    bool service_links; /* variables of the Services of its namespace */
    bool has_host_users, host_users;
    char *hostname, *subdomain, *hostname_override; /* NULL: none */
    bool hostname_as_fqdn;
    struct api_local_ref *image_pull_secrets;
    size_t n_image_pull_secrets;
    struct api_host_alias *host_aliases;
    size_t n_host_aliases;
    struct api_pod_security security;
    char *priority_class_name; /* NULL: none */
    bool has_priority;
    int32_t priority;
    char *os_name; /* "linux", "windows"; NULL: not given */
    bool has_resources;
    struct api_resources resources;    /* pod level */
    char *runtime_class_name;          /* NULL or "": the default runtime */
    struct api_resource_list overhead; /* of its runtime, in addition to the containers' requests */
    struct api_kvs node_selector;
    bool has_node_terms; /* required node affinity was given */
    struct api_node_term *node_terms;
    size_t n_node_terms;
    struct api_toleration *tolerations;
    size_t n_tolerations;
    bool gated; /* it has schedulingGates */
    struct api_readiness_gate *readiness_gates;
    size_t n_readiness_gates;
};

/* The init containers and then the regular ones; NULL: there are no more. */
const struct api_container *api_container_at(const struct api_pod_spec *spec, size_t index);
/* NULL if the pod has no ephemeral container of that name. */
const struct api_container *api_ephemeral_find(const struct api_pod_spec *spec, const char *name);
/* NULL if the pod has no volume of that name. */
const struct api_volume *api_volume_find(const struct api_pod_spec *spec, const char *name);
/* Whether it mounts only a part of its volume; "" means the whole. */
bool api_mount_has_sub_path(const struct api_volume_mount *m);

/* False: the pod has its own user namespace (hostUsers: false). */
static inline bool api_pod_host_users(const struct api_pod_spec *spec)
{
    return !spec->has_host_users || spec->host_users;
}
bool api_label_selector_matches(const struct api_label_selector *s, const struct api_kvs *labels);
/* kubelet's NodeAffinity predicate: whether nodeSelector and at least one term of the required node affinity
 * match a node of this name with these labels. */
/* Whether one of the terms holds. */
bool api_node_terms_match(const struct api_node_term *terms, size_t n, const char *node_name,
                          const struct api_kvs *labels);
bool api_pod_fits_node(const struct api_pod_spec *spec, const char *node_name, const struct api_kvs *labels);

/* kubelet's TaintToleration predicate: the first taint that the pod does not tolerate, or NULL. Only
 * NoExecute is checked; the other effects are for schedulers. */
const struct api_taint *api_pod_untolerated(const struct api_pod_spec *spec, const struct api_taint *taints,
                                            size_t n);
bool api_pod_tolerates(const struct api_pod_spec *spec, const struct api_taint *taint); /* of any effect */
/* A scheduler's: the first taint of NoSchedule or NoExecute that the pod does not tolerate, or NULL. */
const struct api_taint *api_pod_unschedulable(const struct api_pod_spec *spec, const struct api_taint *taints,
                                              size_t n);
/* How long the pod stays with this NoExecute taint: 0 without a toleration, INT64_MAX: for ever
 * (pkg/controller/tainteviction). */
int64_t api_pod_stays_seconds(const struct api_pod_spec *spec, const struct api_taint *taint);

enum api_qos { API_QOS_GUARANTEED, API_QOS_BURSTABLE, API_QOS_BEST_EFFORT };
const char *api_qos_name(enum api_qos qos); /* "Guaranteed", ... */

struct api_served { /* of a pod of the apiserver: members that no manifest has */
    bool deleting;  /* deletionTimestamp is set */
    int64_t deletion_grace_seconds;
    char *conditions; /* JSON: {"type": "status"} of conditions that others set; NULL: none */
    /* This node cannot run it: the field and why; NULL: it can. The spec is a reduced one then. */
    char *problem;
};

struct api_pod {
    struct arena arena; /* holds everything below; the pod itself is a separate allocation */
    int refs;
    struct api_meta meta;
    struct api_pod_spec spec;
    enum api_qos qos;
    enum api_origin origin;
    struct api_served served;
    char *owner_uid;         /* of the workload of this node that made it; NULL: none */
    char *json;              /* {"apiVersion","kind","metadata","spec"} with defaults, compact */
    struct api_strs ignored; /* "spec.containers[0].restartPolicyRules: not acted on yet" */
};

struct api_pod *api_pod_ref(struct api_pod *p);
void api_pod_unref(struct api_pod *p); /* NULL is fine */
SCOPE_DEFINE(struct api_pod, api_pod_unref)

/* A ConfigMap or a Secret. A Secret's memory is wiped when the last reference is dropped. */
struct api_datum {
    char *key;
    void *data;
    size_t size;
    bool binary; /* ConfigMap binaryData: not usable in environments */
};

enum api_config_kind { API_CONFIG_MAP, API_SECRET };

struct api_config {
    struct arena arena;
    int refs;
    enum api_config_kind kind;
    enum api_origin origin;
    struct api_meta meta;
    char *type; /* Secret type; NULL for a ConfigMap */
    bool immutable;
    struct api_datum *data; /* sorted by key */
    size_t n_data;
};

const struct api_datum *api_config_get(const struct api_config *c, const char *key); /* NULL if absent */
struct api_config *api_config_ref(struct api_config *c);
void api_config_unref(struct api_config *c);
SCOPE_DEFINE(struct api_config, api_config_unref)

struct api_priority_class {
    struct arena arena;
    int refs;
    enum api_origin origin;
    struct api_meta meta; /* cluster-scoped */
    int32_t value;
    bool global_default;
    char *preemption_policy, *description; /* NULL: not given */
};

struct api_priority_class *api_priority_class_ref(struct api_priority_class *c);
void api_priority_class_unref(struct api_priority_class *c);

struct api_runtime_class {
    struct arena arena;
    int refs;
    enum api_origin origin;
    struct api_meta meta; /* cluster-scoped */
    char *handler;        /* of the node's configuration: agent/runtime/container.h */
    struct api_resource_list overhead;
};

struct api_runtime_class *api_runtime_class_ref(struct api_runtime_class *c);
void api_runtime_class_unref(struct api_runtime_class *c);
#endif
