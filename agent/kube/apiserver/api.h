/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - the local API of a node without a cluster, for kubectl, in coracle-kube. It listens through
 * agent/kube/server, which passes it the requests of clients; it keeps a copy of the node's objects, which
 * the daemon sends (GET /store of the status socket), and answers from that copy. All writes go to the
 * daemon.
 *
 * Only clients with a certificate of the node's own CA and the group system:masters are accepted. The
 * messages are `config` with `localPKI`, and `certificate` with the usage `local` (agent/kube/README.md).
 * Loop thread only.
 */
#ifndef AGENT_KUBE_APISERVER_API_H
#define AGENT_KUBE_APISERVER_API_H
#include "agent/kube/link/link.h"
#include "agent/kube/server/server.h"

struct kube_api;

struct kube_api_options {
    uv_loop_t *loop;
    struct kube_link *link;     /* lives longer */
    struct kube_server *server; /* likewise: its `local` is kube_api_request() */
};

enum err_code kube_api_open(struct kube_api **ret, const struct kube_api_options *o,
                            struct err *e) MUST_CHECK;
/* Any message of the daemon, borrowed; others than `config` of a lone node are ignored. */
void kube_api_message(struct kube_api *a, const char *type, json_t *message);
/* A request is complete. */
void kube_api_request(struct kube_api *a, struct caller *c);
/* After kube_server_close(); NULL is fine. The loop must run once more. */
void kube_api_close(struct kube_api *a);
#endif
