/* SPDX-License-Identifier: Apache-2.0 */
/* changes - the effects when a provider appears or disappears, or its devices change. */
#include "agent/pod/device/internal.h"

#include <string.h>

static bool asks_for(const struct pod *p, const char *resource)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (api_resource_get(&p->ctrs[i]->spec->resources.limits, resource) != NULL)
            return true;
    return false;
}

/* Called while the inventory changes, so pods are only woken, and act on a later turn. */
void device_on_change(const struct dp_resource *r, enum dp_change what, void *node)
{
    struct node *n = node;

    if (n->closing)
        return;
    device_node(n)->changes++;
    switch (what) {
    case DP_CHANGE_LIST:
    case DP_CHANGE_HEALTH:
    case DP_CHANGE_FORGOTTEN:
        checkpoint_later(n);
        break;
    case DP_CHANGE_PROVIDER: /* as in kubelet, the file keeps the last list */
    case DP_CHANGE_COUNT:
        break;
    }
    pods_each (n, p)
        if (asks_for(p, r->name) && (p->state != POD_TERMINATED || device_is_judged(p)))
            pod_wake(p, "devices changed");
}
