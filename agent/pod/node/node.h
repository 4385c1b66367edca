/* SPDX-License-Identifier: Apache-2.0 */
/* node - connects everything: the pods of this node, each with its worker, with the store, the runtime, the
 * network, volumes and cgroups. main.c opens it, the status server queries it. Loop thread only. */
#ifndef AGENT_POD_NODE_NODE_H
#define AGENT_POD_NODE_NODE_H
#include "agent/pod/core/node_options.h"
#include "agent/pod/core/room.h"

struct pod;

extern const struct room *const node_rooms[]; /* ends with NULL */

/* Reads the records of an earlier run and adopts its pods; nothing is started or ended before
 * node_sources_ready(). */
enum err_code node_open(struct node **ret, const struct node_options *o, struct err *e) MUST_CHECK;

/* The runtime is opened after the node, because its events go to node_on_container_event(). */
void node_set_runtime(struct node *n, struct rt *rt);
/* For an adopted pod; it stays `unseen` if its state could not be read. */
void node_recover_pod(struct pod *p);
void node_on_container_event(const char *id, void *node);
void node_set_server(struct node *n, struct status_server *s);
/* Right after src_folder_open(): passes the pods of an earlier run, with their files, to the folder. */
void node_set_folder(struct node *n, struct src_folder *f);

/* Every source has delivered its first set: compares pods with it and removes leftovers of earlier runs. */
void node_sources_ready(struct node *n);

/* A file of the manifest folder was read: problems become log lines and events. */
void node_on_manifest(const struct src_file *f, void *node);

/* --ephemeral: ends all pods with their grace period; done(arg) when nothing is left. A second call kills
 * immediately. */
void node_drain(struct node *n, void (*done)(void *arg), void *arg);

/* Cancels operations and frees the node; pods are unchanged. The loop must run until operations are gone:
 * idle(arg). */
void node_close(struct node *n, void (*idle)(void *arg), void *arg);
void node_free(struct node *n);

/* Takes the settings that may change at runtime from *o: those from max_pods to labels, of DNS, sysctls,
 * seccomp. Running containers keep what they were started with. */
void node_set_options(struct node *n, const struct node_options *o);

#endif
