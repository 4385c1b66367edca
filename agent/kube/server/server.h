/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - the HTTPS port of the node (kubelet's 10250): TLS, authentication, authorization, streams.
 *
 * It listens after the message `config`, requests connections to the status socket from the daemon (`serve`,
 * `served`), and translates its clients' requests to them; agent/kube/README.md lists the messages. All
 * resources are limited (internal.h). Loop thread only.
 */
#ifndef AGENT_KUBE_SERVER_SERVER_H
#define AGENT_KUBE_SERVER_SERVER_H
#include "agent/kube/client/client.h"
#include "agent/kube/link/link.h"

struct caller;
struct kube_server;

struct kube_server_options {
    uv_loop_t *loop;
    struct kube_client *client; /* lives longer */
    struct kube_link *link;     /* lives longer */
    /* A request to the local API (`local` in `config`) instead of the node's port: answered by its own rules.
     */
    void (*local)(struct caller *c);
    void *local_arg; /* caller_local() */
    /* The daemon is about to be asked for /metrics: a message on the link now is in its answer. */
    void (*scraped)(void *arg);
    void *scraped_arg;
};

enum err_code kube_server_open(struct kube_server **ret, const struct kube_server_options *o,
                               struct err *e) MUST_CHECK;
/* Any message of the daemon; borrowed. Types that are not its own are ignored. fd (-1: none) is the callee's.
 */
void kube_server_message(struct kube_server *s, const char *type, json_t *message, int fd);
/* NULL is fine. Connections are closed, requests under way are cancelled; the loop must run until they ended.
 */
void kube_server_close(struct kube_server *s);
#endif
