/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/driver_link.h"

#include "agent/pod/core/pod.h"

static const struct node_driver_link *link_of(const struct pod *p)
{
    return p->api->origin == API_FROM_SERVER ? p->node->driver_link : NULL;
}

enum err_code driver_bound(const struct pod *p, const struct api_volume *v, struct driver_bound *ret,
                           struct err *e)
{
    const struct node_driver_link *l = link_of(p);

    if (l != NULL)
        return l->bound(p, v, ret, l->arg, e);
    return err_set(e, ERR_NOT_FOUND, "PVC is not bound");
}

enum err_code driver_attached(const struct pod *p, const struct driver_attachment *a, json_t **ret,
                              struct err *e)
{
    const struct node_driver_link *l = link_of(p);

    if (l != NULL)
        return l->attached(p, a, ret, l->arg, e);
    return err_set(e, ERR_UNIMPLEMENTED,
                   "driver %.80s wants its volumes attached to the node, which only controllers of a cluster "
                   "do; a CSIDriver object with attachRequired: false says that it needs none",
                   a->driver);
}

void driver_expanded(const struct pod *p, const struct api_volume *v, uint64_t bytes,
                     const struct err *result)
{
    const struct node_driver_link *l = link_of(p);

    if (l != NULL && l->expanded != NULL)
        l->expanded(p, v, bytes, result, l->arg);
}

void node_set_driver_link(struct node *n, const struct node_driver_link *l)
{
    n->driver_link = l;
}
