/* SPDX-License-Identifier: Apache-2.0 */
/* node_options - what a node is opened with. */
#ifndef AGENT_POD_CORE_NODE_OPTIONS_H
#define AGENT_POD_CORE_NODE_OPTIONS_H
#include "agent/api/node_resources.h"
#include "agent/runtime/container.h"
#include "agent/source/folder.h"
#include "agent/source/store.h"
#include "agent/status/server.h"
#include "cgroups/cgroup.h"
#include "cni/cni.h"
#include "volumes/volumes.h"

struct pod_tokens; /* tokens.h */
struct node;

struct node_shutdown_group { /* of a graceful shutdown of the machine: shutdown.h */
    int32_t priority;
    uint64_t grace_ms;
};

struct image_gc_policy { /* as KubeletConfiguration has it */
    unsigned high_percent, low_percent;
    uint64_t min_age_ms, max_age_ms; /* max 0: none */
};

struct node_options {  /* all strings borrowed for the node's life */
    int64_t opened_ns; /* when the agent began to read its state; 0: now */
    uv_loop_t *loop;
    const char *node_name, *node_ip; /* node_ip: IPv4 or IPv6 text, may be "" */
    const char *root_dir, *state_dir, *run_dir;
    const char *pod_logs_dir, *container_logs_dir;
    int64_t log_max_bytes; /* of one file of a container's log */
    unsigned log_max_files;
    const char *cluster_domain;     /* "" : none */
    const char *pod_cidr;           /* "10.1.0.0/16,fd00::/64" for plugins that want to be told; "" : none */
    const char *const *cluster_dns; /* NULL-terminated */
    const char *const
        *allowed_unsafe_sysctls; /* patterns that sysctls_check_patterns() accepted; NULL-terminated */
    const char *resolv_conf;     /* the node's file; "": none */
    const char *pause_path;      /* coracle-pause */
    unsigned max_pods;
    int64_t pod_pids_limit; /* processes of one pod; -1: any number */
    bool cpu_cfs_quota;     /* limits.cpu are enforced */
    uint64_t cpu_cfs_period_us;
    uint64_t backoff_max_ms; /* longest pause of a container that crashes */
    struct image_gc_policy image_gc;
    const struct api_kvs *labels; /* of the node, beside those every node has; NULL: none */
    const struct api_taint *taints;
    size_t n_taints;
    json_t *(*config)(void *arg); /* what `coracle config` shows, a new reference; NULL: nothing */
    void *config_arg;
    uint64_t cpu_milli, memory_bytes; /* capacity of this node */
    uint64_t swap_bytes;              /* likewise; 0: none is on */
    struct api_node_resources resources;
    const char *system_cgroup, *kube_cgroup; /* that systemReserved and kubeReserved limit; "": none */
    const char *hugepages_dir;               /* where its huge pages stand; NULL: the kernel's folder */
    bool seccomp_default;
    const char *probe_helper; /* coracle-probe; NULL: HTTPS probes and hooks fail */

    bool local_limits;                                 /* limits of local storage are enforced */
    const struct node_shutdown_group *shutdown_groups; /* sorted, lowest priority first; borrowed */
    size_t n_shutdown_groups;                          /* 0: no graceful shutdown */

    struct src_store *store;
    struct cg_tree *cgroups;
    struct cni *cni;
    struct vol_node *volumes;
    const struct pod_tokens *tokens; /* NULL: there is no API server */
    struct img_store *images;
};
#endif
