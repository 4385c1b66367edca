/* SPDX-License-Identifier: Apache-2.0 */
/* node_options - the options of a node. */
#ifndef AGENT_POD_CORE_NODE_OPTIONS_H
#define AGENT_POD_CORE_NODE_OPTIONS_H
#include "agent/api/node_resources.h"
#include "agent/eviction/settings.h"
#include "agent/runtime/container.h"
#include "agent/source/folder.h"
#include "agent/source/store.h"
#include "agent/status/server.h"
#include "cgroups/cgroup.h"
#include "cni/cni.h"
#include "deviceplugin/topology.h"
#include "volumes/volumes.h"

struct pod_tokens; /* tokens.h */
struct trimmer;    /* base/trimmer.h */
struct node;
struct pl_settings; /* agent/placement/settings.h */

struct node_shutdown_group { /* for a graceful shutdown of the machine: shutdown.h */
    int32_t priority;
    uint64_t grace_ms;
};

struct image_gc_policy { /* as in KubeletConfiguration */
    unsigned high_percent, low_percent;
    uint64_t min_age_ms, max_age_ms; /* max 0: none */
};

struct node_options {  /* all strings borrowed while the node exists */
    int64_t opened_ns; /* when the agent began to read its state; 0: now */
    uv_loop_t *loop;
    struct trimmer *trimmer;         /* may be NULL */
    const char *node_name, *node_ip; /* node_ip: IPv4 or IPv6 text, may be "" */
    const char *root_dir, *state_dir, *run_dir;
    const char *volume_plugin_dir; /* of FlexVolume drivers; NULL: there are none */
    const char *pod_logs_dir, *container_logs_dir;
    int64_t log_max_bytes; /* per file of a container's log */
    unsigned log_max_files;
    const char *cluster_domain;     /* "" : none */
    const char *pod_cidr;           /* "10.1.0.0/16,fd00::/64" for plugins that support it; "": none */
    const char *const *cluster_dns; /* NULL-terminated */
    const char *const
        *allowed_unsafe_sysctls; /* patterns accepted by sysctls_check_patterns(); NULL-terminated */
    const char *resolv_conf;     /* the node's file; "": none */
    const char *pause_path;      /* coracle-pause */
    unsigned max_pods;
    int64_t pod_pids_limit; /* maximum of processes per pod; -1: unlimited */
    bool cpu_cfs_quota;     /* enforce limits.cpu */
    uint64_t cpu_cfs_period_us;
    uint64_t backoff_max_ms; /* longest delay before a crashing container is restarted */
    struct image_gc_policy image_gc;
    const struct api_kvs *labels; /* of the node, in addition to those of every node; may be NULL */
    const struct api_taint *taints;
    size_t n_taints;
    json_t *(*config)(void *arg); /* for `coracle config`, a new reference; may be NULL */
    void *config_arg;
    /* The kubeconfig of the local API, likewise and with the same argument; may be NULL. */
    json_t *(*kubeconfig)(void *arg, struct err *e);
    uint64_t cpu_milli, memory_bytes; /* capacity of this node */
    uint64_t swap_bytes;              /* likewise; 0: no swap */
    struct api_node_resources resources;
    struct ev_settings eviction;             /* without implied thresholds: ev_settings_complete() */
    const char *system_cgroup, *kube_cgroup; /* limited by systemReserved and kubeReserved; "": none */
    const char *hugepages_dir;               /* huge pages' folder; NULL: the kernel's */
    bool seccomp_default;
    const char *sample_network; /* a network list to begin with; "": none is installed */
    const char *probe_helper;   /* coracle-probe; NULL: HTTPS probes and hooks fail */

    /* How long a pod waits for a provider of its devices before it is rejected as in kubelet; 0: not at all
     */
    uint64_t device_plugin_wait_ms;
    /* Processors and memory for single containers; used while the node opens only; NULL: none. */
    const struct pl_settings *placement;
    const struct api_counts *extended_resources; /* of the configuration; may be NULL */
    const char *device_dir;                      /* declarations of devices; NULL or "": none */
    const char *const *cdi_dirs;                 /* NULL-terminated; NULL: none */

    bool local_limits;     /* limits of local storage act */
    bool storage_enforced; /* by hard quota limits, unless the pod's annotation overrides it */
    const struct node_shutdown_group *shutdown_groups; /* sorted, lowest priority first; borrowed */
    size_t n_shutdown_groups;                          /* 0: no graceful shutdown */

    struct src_store *store;
    struct cg_tree *cgroups;
    struct cni *cni;
    struct vol_node *volumes;
    const struct pod_tokens *tokens; /* NULL: no API server */
    struct img_store *images;
};
#endif
