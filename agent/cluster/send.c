/* SPDX-License-Identifier: Apache-2.0 */
/* send - messages for coracle-kube. */
#include "agent/cluster/internal.h"
#include "base/log.h"

/* Beyond this limit, messages for display (events) are dropped; required messages wait in the link. */
#define ROOM_MAX ((size_t)8 << 20)

bool cluster_send(struct cluster *c, json_t *message)
{
    struct err e = { 0 };
    bool sent = false;

    if (message == NULL) {
        log_error("cannot send coracle-kube a message: out of memory");
        return false;
    }
    if (c->link == NULL) {
        json_decref(message);
        return false;
    }
    sent = kube_link_send(c->link, message, -1, &e) == ERR_OK;
    if (!sent && e.code != ERR_UNAVAILABLE) {
        /* The process does not read, so it is stuck. A new process receives every object again. */
        log_error("coracle-kube does not accept messages; restarting it", F_ERR(&e));
        proc_cancel(&c->proc);
    }
    return sent;
}

bool cluster_has_room(const struct cluster *c)
{
    return c->link != NULL && kube_link_backlog(c->link) < ROOM_MAX;
}
