/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster - the daemon's side of a cluster: starts coracle-kube, adds the objects that it sends to the store,
 * and reports pods, events and the node to it. agent/kube/README.md lists the messages.
 *
 * coracle-kube may end at any time: it is restarted after CLUSTER_AGAIN_MS and then receives everything
 * again. Objects that it had sent apply until it sends other ones, so running pods are not affected. Loop
 * thread only.
 */
#ifndef AGENT_CLUSTER_CLUSTER_H
#define AGENT_CLUSTER_CLUSTER_H
#include "agent/pod/core/node.h"
#include "agent/source/store.h"

#include <jansson.h>
#include <uv.h>

/* The pause before a restart, doubled up to the maximum while the process ends within CLUSTER_STEADY_MS of
 * its start. */
#define CLUSTER_AGAIN_MS 200
#define CLUSTER_AGAIN_MAX_MS 30000
#define CLUSTER_STEADY_MS 10000
/* Requests to the apiserver in progress at a time; further requests of pods are retried. */
#define CLUSTER_TOKENS_MAX 4096
/* Services with a cluster IP (the number that coracle-kube watches), their memory, and the ports of one.
 * Services beyond a limit are logged, and containers have no variables for them. */
#define CLUSTER_SERVICES_MAX 20000
#define CLUSTER_SERVICE_BYTES_MAX ((size_t)32 << 20)
#define CLUSTER_SERVICE_PORTS_MAX 4096

/* Objects kept on the disk by an earlier run (agent/kept) are used if the apiserver has not answered this
 * long after the start, which is the time of a connection on a network that has just come up... */
#define KEEP_WAIT_MS 2000
/* ... and this long after the start if it answers, but has not sent an object. */
#define KEEP_LATE_MS 10000
#define CLUSTER_RUNTIME_CLASSES_MAX 1024
#define CLUSTER_DRIVERS_MAX 1024 /* CSIDrivers */
/* ClusterTrustBundles that pods choose, and their memory: they are kept in one file (KEPT_TEXT_MAX). */
#define CLUSTER_TRUST_MAX 4096
#define CLUSTER_TRUST_BYTES_MAX ((size_t)8 << 20)
#define CLUSTER_NAME_MAX 253 /* bytes, of any object's name */

struct cluster;

struct cluster_options { /* texts are borrowed while the cluster exists */
    uv_loop_t *loop;
    struct src_store *store;
    struct node *node;
    const char *program;      /* coracle-kube */
    const char *seal_program; /* coracle-seal */
    /* There is no cluster: the process only serves the local API, and no pod is reported to it. */
    bool lone;
    json_t *config; /* the message `config` without its type; ownership is taken, also on failure */
    /* A connection of the status socket with root's rights, for a client of the node's port. */
    enum err_code (*lend)(int *ret, void *arg, struct err *e);
    /* Returns a new Node object; NULL: out of memory. */
    json_t *(*node_object)(void *arg);
    /* coracle-kube requests other credentials: "expired", "unauthorized". */
    void (*on_anew)(const char *why, void *arg);
    /* A certificate was issued: the message `certificate`, borrowed. */
    void (*on_certificate)(const json_t *message, void *arg);
    void *arg;
};

/* Before the node's pods start. *ret changes only on success. */
enum err_code cluster_open(struct cluster **ret, const struct cluster_options *o, struct err *e) MUST_CHECK;
/* The message `credentials` without its type; taken. Sent now, and after each start of coracle-kube. */
void cluster_set_credentials(struct cluster *c, json_t *credentials);
/* The same for the message `serving`. */
void cluster_set_serving(struct cluster *c, json_t *serving);
/* The reason why there are no credentials, or no new ones; NULL: no problem. For `coracle explain node`. */
void cluster_set_trouble(struct cluster *c, const char *why);
/* The daemon ends: requests the end of coracle-kube, and sends no further messages; NULL is allowed. The loop
 * must run until the process has ended (cluster_busy()), then cluster_free(). */
void cluster_close(struct cluster *c);
bool cluster_busy(const struct cluster *c); /* false for NULL */
void cluster_free(struct cluster *c);       /* NULL is fine; the loop must run again */

/* The source of service account tokens for the node: the apiserver. */
const struct pod_tokens *cluster_tokens(struct cluster *c);
#endif
