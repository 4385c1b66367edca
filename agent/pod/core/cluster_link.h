/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_link - reports of pods on a node of a cluster: agent/cluster sets it, and the rooms do not depend
 * on the cluster otherwise. Loop thread only.
 */
#ifndef AGENT_POD_CORE_CLUSTER_LINK_H
#define AGENT_POD_CORE_CLUSTER_LINK_H
#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node;
struct pod;
struct pod_tokens;
struct api_kvs;
struct api_taint;
struct api_payload_source;

struct node_service_port {
    uint16_t number;
    const char *name;     /* "": none */
    const char *protocol; /* "TCP", "UDP", "SCTP" */
};

struct node_service { /* one with a cluster IP */
    const char *namespace_, *name, *ip;
    const struct node_service_port *ports;
    size_t n_ports;
};

/* Borrowed until the loop's next turn. */
typedef void (*node_service_fn)(const struct node_service *s, void *to);

struct node_cluster {
    void (*pod_changed)(struct pod *p, void *arg); /* something that its status shows may have changed */
    void (*pod_gone)(const struct pod *p, void *arg);
    void (*event)(json_t *event, void *arg); /* an Event that nothing aggregated; borrowed */
    void (*node_changed)(void *arg);         /* the node became Ready, or ceased to be */
    json_t *(*explain)(void *arg);           /* of the connection: {"state", "detail"}; new */
    void (*metrics)(struct buf *out, void *arg);
    json_t *(*kept)(void *arg); /* of objects kept on the disk for a start without the apiserver, likewise */
    /* Calls `each` for every Service with a cluster IP. False: the first set is not complete, some of this
     * namespace may be missing. */
    bool (*services)(const char *namespace_, node_service_fn each, void *to, void *arg);
    /* The content of a clusterTrustBundle: PEM, in an order of the pod's own. ERR_PRECONDITION: it is not
     * known, refused, or (if not optional) absent; node_trust_changed() follows. */
    enum err_code (*trust)(const struct api_payload_source *s, const char *pod_uid, struct buf *ret,
                           struct err *e, void *arg);
    void (*drivers_changed)(void *arg); /* a CSI driver registered, was removed, or changed its data */
    /* Whether the first set of RuntimeClasses is complete: one that the store does not have is absent then.
     */
    bool (*runtime_classes_known)(void *arg);
    /* Whether the labels and taints that the node has in the apiserver may still come (node_set_served):
     * those of the configuration refuse no pod before. Ends in bounded time; pods that wait are woken. */
    bool (*served_may_come)(void *arg);
    void *arg;
};

/* Before pods start. The struct is borrowed while the node exists; NULL: it has joined none. */
void node_set_cluster(struct node *n, const struct node_cluster *c);
/* Before pods start: where service account tokens come from. */
void node_set_tokens(struct node *n, const struct pod_tokens *t);
/* The node's labels and taints in the apiserver: admission uses them instead of those of the configuration.
 * Borrowed until the next call; labels NULL: unknown. */
void node_set_served(struct node *n, const struct api_kvs *labels, const struct api_taint *taints,
                     size_t n_taints);
/* They are not known and will not come soon (served_may_come): pods that wait for them are judged. */
void node_served_unknown(struct node *n);
/* The apiserver has delivered its first set of pods: those of an earlier run that it does not have end, and
 * leftovers are removed. */
void node_server_ready(struct node *n);
/* A ConfigMap or Secret of the apiserver is confirmed to be absent, or the apiserver refused it: pods that
 * wait for it check again. The store reports changed and removed objects. */
void node_config_lacking(struct node *n, bool secret, const char *namespace_, const char *name);
/* The apiserver has delivered its first set of Services: containers that wait for it check again. */
void node_services_known(struct node *n);
/* Likewise of RuntimeClasses, for pods that wait for theirs. */
void node_runtime_classes_known(struct node *n);
/* ClusterTrustBundles of the apiserver changed: volumes that show some are written again. */
void node_trust_changed(struct node *n);
#endif
