/*
 * node - the part where everything meets: the pods of this node, each with its worker, over the store, the
 * runtime, the network, volumes and cgroups.  main.c opens it, the status server asks it.
 *
 * Loop thread only.
 */
#ifndef AGENT_POD_NODE_H
#define AGENT_POD_NODE_H
#include "agent/api/node_resources.h"
#include "agent/pod/image_gc.h"
#include "agent/pod/tokens.h"
#include "agent/runtime/container.h"
#include "agent/source/folder.h"
#include "agent/source/store.h"
#include "agent/status/server.h"
#include "cgroups/cgroup.h"
#include "cni/cni.h"
#include "volumes/volumes.h"

struct pod;
struct node;

struct node_shutdown_group { /* of a graceful shutdown of the machine: shutdown.h */
    int32_t priority;
    uint64_t grace_ms;
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

/* Reads the records of an earlier run and takes its pods over; nothing is started or ended before
 * node_sources_ready(). */
enum err_code node_open(struct node **ret, const struct node_options *o, struct err *e) MUST_CHECK;

/* The runtime is opened after the node, since its events go to node_on_container_event(). */
void node_set_runtime(struct node *n, struct rt *rt);
/* Of a pod that is taken over; it stays `unseen` where that could not be looked at. */
void node_recover_pod(struct pod *p);
void node_on_container_event(const char *id, void *node);
void node_set_server(struct node *n, struct status_server *s);
/* Right after src_folder_open(): the folder is told which pods an earlier run had from which files. */
void node_set_folder(struct node *n, struct src_folder *f);

/* Every source has delivered its first set: pods are compared with it, left-overs of earlier runs are
 * removed. */
void node_sources_ready(struct node *n);

/* A file of the manifest folder was read: problems become log lines and events. */
void node_on_manifest(const struct src_file *f, void *node);

/*
 * The machine shuts down: pods end by priority, new ones are refused; done(arg) when they are over or had
 * their time (perhaps at once).  Told again, only done and arg change.
 */
void node_shutdown_begin(struct node *n, void (*done)(void *arg), void *arg);
/* It does not, or not any more: pods that a shutdown ended start again. */
void node_shutdown_cancel(struct node *n);
/* What is known of the lock that holds a shutdown up, for `coracle explain node`. */
void node_shutdown_inhibitor(struct node *n, bool failed, const char *text);

/* --ephemeral: ends all pods with their grace; done(arg) when nothing is left.  Called again: kills at once.
 */
void node_drain(struct node *n, void (*done)(void *arg), void *arg);

/* Cancels what is under way and frees; pods stay as they are.  The loop must run until operations are gone:
 * idle(arg). */
void node_close(struct node *n, void (*idle)(void *arg), void *arg);
void node_free(struct node *n);

/* Settings that may change while the agent runs are taken from *o: those from max_pods to labels, of DNS,
 * sysctls, seccomp.  What runs keeps what it was started with. */
void node_set_options(struct node *n, const struct node_options *o);

/* What the status server asks. Valid as long as the node. */
const struct status_provider *node_provider(struct node *n);
#endif
