/* SPDX-License-Identifier: Apache-2.0 */
/* What sandbox keeps of the node for itself. */
#ifndef AGENT_POD_SANDBOX_INTERNAL_H
#define AGENT_POD_SANDBOX_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/pod/sandbox/net_attach.h"
#include "base/process.h"
#include "cni/link_watch.h"
#include "cni/strays.h"

struct net_heal { /* net_heal.c; counts of its last round */
    struct cni_gc gc;
    bool gc_again;
    struct cni_strays strays;
    struct cni_link_watch *watch; /* net_watch.c; NULL: none */
    size_t adopted;               /* attachments known only by what they left, since the start */
    unsigned running, checked, again;
    size_t networks; /* that GC was run on */
    char gc_error[512];
};

struct sandbox_node {
    struct net_heal heal;
    struct { /* node_users.c: whether pods can have users of their own */
        enum { USERS_ASKING, USERS_CAN, USERS_CANNOT } state;
        char why[504]; /* not */
        struct proc_call call;
    } users;
    char tag[SANDBOX_TAG_DIGITS + 1]; /* the first digits of sandbox ids */
    bool told_no_cluster_dns;
};

static inline struct sandbox_node *sandbox_node(const struct node *n)
{
    return n->parts[ROOM_SANDBOX];
}
#endif
