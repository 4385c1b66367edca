/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox - the pod's namespaces and its network.  Loop thread only. */
#ifndef AGENT_POD_SANDBOX_SANDBOX_H
#define AGENT_POD_SANDBOX_SANDBOX_H
#include "agent/pod/core/pod.h"

extern const struct room sandbox_room;

void pod_set_net(struct pod *p, enum net_state s);
void sandbox_step(struct pod *p);          /* towards NET_READY */
bool sandbox_teardown_step(struct pod *p); /* towards NET_DELETED; true when there */
/* After a restart of the agent: from the facts.  An error: they could not be looked at, nothing was decided.
 */
enum err_code sandbox_recover(struct pod *p, struct err *ret) MUST_CHECK;
bool sandbox_ready(const struct pod *p);  /* containers can be started in it */
bool sandbox_pinned(const struct pod *p); /* containers can be created in it */
void pidns_step(struct pod *p);
bool pidns_ready(struct pod *p);         /* there, or not asked for */
bool pidns_teardown_step(struct pod *p); /* once no container lives; true when it is gone */
/* After sandbox_recover().  An error: it could not be looked at, nothing was decided. */
enum err_code pidns_recover(struct pod *p, struct err *e) MUST_CHECK;
void pidns_forget(struct pod *p); /* no longer watched; it lives on */
#endif
