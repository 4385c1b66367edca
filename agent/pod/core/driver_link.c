/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/driver_link.h"

#include "agent/pod/core/claim_link.h"
#include "agent/pod/core/pod.h"

static const struct node_driver_link *link_of(const struct pod *p)
{
    return p->api->origin == API_FROM_SERVER ? p->node->driver_link : NULL;
}

enum err_code driver_bound(const struct pod *p, const struct api_volume *v, struct driver_bound *ret,
                           struct err *e)
{
    const struct node_driver_link *l = link_of(p);
    struct claim_place at = { 0 };
    const struct api_generic *now;

    if (l != NULL)
        return l->bound(p, v, ret, l->arg, e);
    if (claim_place(p, v, &at, e) != ERR_OK)
        return e->code;
    if (at.volume == NULL)
        return err_set(e, ERR_NOT_FOUND, "the claim has a folder of the agent");
    now = src_store_generic(p->node->o.store, p->api->origin, API_KIND_PERSISTENT_VOLUME, NULL,
                            at.volume->meta.name);
    if (now != NULL && now->pv != NULL) /* its size may have been edited since it was bound */
        at.volume = now;
    *ret = (struct driver_bound){ .volume = at.volume, .claim_bytes = (int64_t)at.bytes };
    return ERR_OK;
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

bool driver_is_attached_for(const struct pod *p)
{
    const struct node_driver_link *l = link_of(p);

    return l != NULL && l->device != NULL;
}

enum err_code driver_device(const struct pod *p, const char *name, char *ret, size_t size, struct err *e)
{
    const struct node_driver_link *l = link_of(p);

    if (l != NULL && l->device != NULL)
        return l->device(name, ret, size, l->arg, e);
    return err_set(e, ERR_UNIMPLEMENTED, "no controller attaches %.300s", name);
}

void driver_expanded(const struct pod *p, const struct api_volume *v, uint64_t bytes,
                     const struct err *result)
{
    const struct node_driver_link *l = link_of(p);

    if (l != NULL && l->expanded != NULL)
        l->expanded(p, v, bytes, result, l->arg);
    else if (l == NULL && result->code == ERR_OK)
        claim_grown(p, v, bytes);
}

void node_set_driver_link(struct node *n, const struct node_driver_link *l)
{
    n->driver_link = l;
}
