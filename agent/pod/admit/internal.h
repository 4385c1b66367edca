/* SPDX-License-Identifier: Apache-2.0 */
/* What admit keeps of the node for itself. */
#ifndef AGENT_POD_ADMIT_INTERNAL_H
#define AGENT_POD_ADMIT_INTERNAL_H
#include "agent/pod/core/pod.h"

struct admit_node {
    struct hugepages_watch *hugepages_watch; /* NULL: this kernel has none */
};

static inline struct admit_node *admit_node(const struct node *n)
{
    return n->parts[ROOM_ADMIT];
}
#endif
