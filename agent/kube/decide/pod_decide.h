/* SPDX-License-Identifier: Apache-2.0 */
/* pod_decide - the next step for a pod at the apiserver. Pure. */
#ifndef AGENT_KUBE_DECIDE_POD_DECIDE_H
#define AGENT_KUBE_DECIDE_POD_DECIDE_H
#include <stdbool.h>

enum pod_action {
    POD_NOTHING,
    POD_PATCH,         /* its status */
    POD_DELETE,        /* grace 0, with the uid as precondition */
    POD_CREATE_MIRROR, /* POST */
};

struct pod_facts {
    bool synced;     /* the apiserver has sent all pods of the node */
    bool node_known; /* the Node exists and is not being deleted: it can own a mirror */
    bool there;      /* the apiserver has a pod of this name */
    bool there_is_mirror, there_is_leaving /* has a deletionTimestamp */, there_is_final /* its phase */;
    bool there_was_deleted; /* by us: finalizers hold it */
    bool ours;              /* the node has one of this name: of this uid, or static and there_is_mirror */
    bool ours_is_static, ours_ended;
    bool same_hash; /* of the static pod and the mirror */
    bool differs;   /* the status */
    bool told;      /* the daemon has sent all pods of the node: a mirror without a pod is an orphan */
};

enum pod_action pod_decide(const struct pod_facts *f);
#endif
