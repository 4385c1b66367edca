/* SPDX-License-Identifier: Apache-2.0 */
/* node - the data of the node that all rooms share: its options, its pods, the progress of its shutdown. */
#ifndef AGENT_POD_CORE_NODE_H
#define AGENT_POD_CORE_NODE_H
#include "agent/pod/core/claim_link.h"
#include "agent/pod/core/cluster_link.h"
#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/core/room.h"
#include "agent/pod/core/workload_link.h"
#include "base/boot_timer.h"
#include "base/files/fs.h"

#define NODE_PODS_MAX                                                                                        \
    1024 /* entries in the table, also finished ones: memory stays bounded whatever the folder holds */

/* What lower rooms ask of the worker, set when the node opens: no room calls one above it. */
struct pod_upward {
    void (*queue)(struct pod *p); /* for a step on a later turn of the loop */
    void (*end)(struct pod *p, int64_t grace_seconds, bool finishing, const char *why);
    bool (*idle)(const struct pod *p);
    void (*apply)(struct pod *p, struct api_pod *api);
    void (*recover)(struct pod *p); /* compares its record with the facts once more */
    void (*ready_changed)(struct node *n);
};

struct csi;
struct node_written;

struct node {
    struct node_options o;
    struct pod_upward upward;
    const struct room *const *rooms; /* room.h: all of them, then NULL */
    void *parts[ROOMS], *parts_memory;
    unsigned open_handles; /* while the node is freed */
    void (*closed)(struct node *n);
    struct rt *rt;
    struct status_server *server;
    struct src_folder *folder;
    struct csi *csi;                            /* the room of volumes opens it; NULL: there are no drivers */
    const struct node_cluster *cluster;         /* NULL: it has joined none */
    const struct node_workloads *workloads;     /* may be NULL */
    const struct node_claims *claims;           /* NULL: none are served */
    const struct node_driver_link *driver_link; /* of the cluster's volumes; NULL: none */
    const struct api_kvs *served_labels;        /* of the node, as the apiserver has them; NULL: unknown */
    const struct api_taint *served_taints;
    size_t n_served_taints;
    struct node_written *written; /* node_written.h; NULL: a node of a cluster */
    bool server_ready;            /* the apiserver has delivered its first set of pods */
    struct pod *pods;
    size_t n_pods;
    int64_t opened_ns; /* wall clock */
    struct boot_time opened_at;
    struct boot_timers *timers;
    char boot_id[ID_BOOT_SIZE];
    bool sources_ready, closing, draining, forced /* drained a second time: at once */;
    bool shutting_down; /* the machine: new pods are refused */
    unsigned sweeps;    /* leftovers that are being removed; a drain waits for them */
    void (*drained)(void *arg);
    void *drained_arg;
    void (*idle)(void *arg);
    void *idle_arg;
    uv_timer_t idle_timer;
};

void node_check_idle(struct node *n);
#endif
