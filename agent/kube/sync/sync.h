/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sync - synchronizes the daemon and the apiserver: the node and its lease, pods and their status, mirror
 * pods, events, objects that pods refer to, tokens and certificates.
 *
 * It begins with the message `config`; agent/kube/README.md lists the messages. Loop thread only.
 */
#ifndef AGENT_KUBE_SYNC_SYNC_H
#define AGENT_KUBE_SYNC_SYNC_H
#include "agent/kube/client/client.h"
#include "agent/kube/link/link.h"

struct kube_sync;

struct kube_sync_options {
    uv_loop_t *loop;
    struct kube_client *client; /* lives longer */
    struct kube_link *link;     /* lives longer */
};

enum err_code kube_sync_open(struct kube_sync **ret, const struct kube_sync_options *o,
                             struct err *e) MUST_CHECK;
/* Any message of the daemon; borrowed. Types that are not its own are ignored. */
void kube_sync_message(struct kube_sync *s, const char *type, json_t *message);
/* Sends the number of requests to the daemon now instead of within a minute (for /metrics). */
void kube_sync_report(struct kube_sync *s);
/* NULL is fine. Requests under way are cancelled; the loop must run until they have ended. */
void kube_sync_close(struct kube_sync *s);
#endif
