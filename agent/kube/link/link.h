/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link - messages between the daemon and coracle-kube, the process that talks to the apiserver, over a
 * connected unix stream socket.
 *
 * A message is a JSON object with a member "type" (agent/kube/README.md lists them); on the wire it is four
 * bytes, its length in little endian, and its text. A message may carry one descriptor: then it has a member
 * "fd": true, and the descriptor travels with the first byte of its frame.
 *
 * Neither end trusts the other: a message may have KUBE_LINK_MESSAGE_MAX bytes, and the queue of unsent
 * messages KUBE_LINK_BACKLOG_MAX bytes. A frame that breaks these rules ends the link. One turn of the loop
 * delivers at most KUBE_LINK_TURN messages. Loop thread only.
 */
#ifndef AGENT_KUBE_LINK_LINK_H
#define AGENT_KUBE_LINK_LINK_H
#include "base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <uv.h>

/* An object of the API has at most 1.5 MiB (etcd's default for a request); as JSON inside a message it has
 * at most twice that. */
#define KUBE_LINK_MESSAGE_MAX ((size_t)4 << 20)
#define KUBE_LINK_BACKLOG_MAX ((size_t)64 << 20)
#define KUBE_LINK_TURN 32

struct kube_link;

struct kube_link_options {
    uv_loop_t *loop;
    int fd; /* a connected unix stream socket; taken also if opening fails */
    /* The message is borrowed; fd (-1: none) is the callee's. May close the link. */
    void (*on_message)(json_t *message, int fd, void *arg);
    /* Once, from the loop, when the other end is gone or broke the rules; not after kube_link_close(). The
     * link is still to be closed. */
    void (*on_lost)(const struct err *why, void *arg);
    void *arg;
};

enum err_code kube_link_open(struct kube_link **ret, const struct kube_link_options *o,
                             struct err *e) MUST_CHECK;
/* NULL is fine. Nothing is called any more; unsent messages are dropped. The loop must run once more. */
void kube_link_close(struct kube_link *l);

/* Takes the message and, unless it is -1, the descriptor; both also on failure. ERR_EXHAUSTED: the other end
 * does not read, or the message is too long; nothing of it was sent. ERR_UNAVAILABLE: the link is lost. */
enum err_code kube_link_send(struct kube_link *l, json_t *message, int fd, struct err *e) MUST_CHECK;
/* Bytes that wait to be sent. */
size_t kube_link_backlog(const struct kube_link *l);
#endif
