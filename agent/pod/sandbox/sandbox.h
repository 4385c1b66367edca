/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox - the pod's namespaces and its network.  Loop thread only. */
#ifndef AGENT_POD_SANDBOX_SANDBOX_H
#define AGENT_POD_SANDBOX_SANDBOX_H
#include "agent/pod/core/pod.h"

enum net_state {
    NET_NONE,
    NET_CREATING,
    NET_PINNED /* namespaces are there */,
    NET_ADDING,
    NET_READY,
    NET_DELETING,
    NET_DELETED
};
const char *net_state_name(enum net_state s);

extern const struct room sandbox_room;

enum net_state sandbox_net(const struct pod *p);
/* Its addresses; none before the network plugins have assigned them. A pod that has ended keeps them. */
const struct cni_result *sandbox_addresses(const struct pod *p);
const char *sandbox_trouble(const struct pod *p);    /* the present problem; NULL: none */
const char *sandbox_pins(const struct pod *p);       /* the folder in which its namespaces are pinned */
const char *sandbox_netns_path(const struct pod *p); /* of its network namespace */
const char *sandbox_hostname(const struct pod *p);
uint32_t sandbox_first_id(const struct pod *p); /* of the host, that root is in its user namespace; 0: none */
/* The handler of its OCI runtime (agent/runtime/container.h), of its last start; "": the default. */
const char *sandbox_runtime_handler(const struct pod *p);
/* The features of that runtime; NULL: it is no longer configured. */
const struct rt_features *sandbox_runtime_features(const struct pod *p);
/* Of that name, or any (NULL): pods that wait for theirs check again at once. */
void sandbox_runtime_classes_changed(struct node *n, const char *name);
void sandbox_explain(const struct pod *p, json_t *steps);
void sandbox_networks_changed(struct node *n); /* network lists: pods that wait for one try again */

void sandbox_step(struct pod *p);          /* towards NET_READY */
bool sandbox_teardown_step(struct pod *p); /* towards NET_DELETED; true when done */
/* After a restart of the agent: determines the state. An error: it could not be read, nothing was decided. */
enum err_code sandbox_recover(struct pod *p, struct err *ret) MUST_CHECK;
/* After sandbox_recover(): its namespaces are gone, and remaining processes have no network. */
bool sandbox_is_lost(const struct pod *p);
void sandbox_begin_anew(struct pod *p); /* a lost sandbox: the leftovers of its attachment are undone first */
bool sandbox_ready(const struct pod *p);  /* containers can be started in it */
bool sandbox_pinned(const struct pod *p); /* containers can be created in it */
void pidns_step(struct pod *p);
bool pidns_ready(struct pod *p);         /* exists, or is not requested */
bool pidns_teardown_step(struct pod *p); /* once no container is alive; true when it is gone */
/* After sandbox_recover(). An error: it could not be examined, nothing was decided. */
enum err_code pidns_recover(struct pod *p, struct err *e) MUST_CHECK;
void pidns_forget(struct pod *p); /* no longer watched; it continues to run */

/* ---- files of the containers' /etc: files.h ---- */
#define FILES_HOSTS "etc-hosts"
enum err_code files_path(const struct pod *p, const char *name, char *ret, size_t size,
                         struct err *e) MUST_CHECK;

/* ---- the node: checks of networks (net_heal.h), user namespaces (node_users.h, userns.h) ---- */
/* Each pod once; `again`: not at the start, so leftovers are searched for, too. */
void net_heal_start(struct node *n, bool again);
void net_heal_explain(const struct node *n, json_t *steps);

/* Tests whether pods can have them; the node's runtime must be open. */
void node_users_ask(struct node *n);
void node_users_explain(const struct node *n, json_t *steps); /* a line of `coracle explain node` */

#define USERNS_IDS 65536 /* per pod with hostUsers: false */
#endif
