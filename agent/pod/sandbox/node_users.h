/* SPDX-License-Identifier: Apache-2.0 */
/* node_users - whether pods can have user namespaces here (hostUsers: false): tested once at the start, in
 * the background. Loop thread only. */
#ifndef AGENT_POD_SANDBOX_NODE_USERS_H
#define AGENT_POD_SANDBOX_NODE_USERS_H
#include "agent/pod/sandbox/sandbox.h"

void node_users_cancel(struct node *n);
bool node_users_live(const struct node *n); /* it is in progress */

/* Whether this pod can have its user namespace. ERR_UNAVAILABLE: the test is running, and the pod will be
 * woken. ERR_UNIMPLEMENTED: not on this node. */
enum err_code node_users_check(const struct pod *p, struct err *e) MUST_CHECK;
#endif
