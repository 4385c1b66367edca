/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/claim_link.h"

#include "agent/pod/core/pod.h"

#include <stdio.h>

static const char no_claims[] = "claims need a storage driver of the cluster";

int claim_name(const struct pod *p, const struct api_volume *v, char *ret, size_t size)
{
    return v->ephemeral ? snprintf(ret, size, "%s-%s", p->api->meta.name, v->name)
                        : snprintf(ret, size, "%s", v->claim_name);
}

enum err_code claim_take(struct pod *p, const struct api_volume *v, struct err *e)
{
    const struct node_claims *c = p->node->claims;

    return c != NULL ? c->take(p, v, c->arg, e) : err_set(e, ERR_PRECONDITION, "%s", no_claims);
}

enum err_code claim_place(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                          struct err *e)
{
    const struct node_claims *c = p->node->claims;

    return c != NULL ? c->place(p, v, ret, c->arg, e) : err_set(e, ERR_NOT_FOUND, "%s", no_claims);
}

void claim_place_of(const struct api_generic *volume, struct claim_place *ret)
{
    const struct api_storage *s = &volume->pv->storage;

    ret->volume = volume;
    ret->block = api_pv_is_block(volume->pv);
    if (s->kind == API_STORAGE_HOST_PATH) {
        ret->path = s->path;
        ret->type = s->type;
    } else if (s->kind == API_STORAGE_LOCAL && ret->block) { /* a folder or disk is bound to the pod */
        ret->path = s->path;
        ret->type = "BlockDevice";
    }
}

void node_set_claims(struct node *n, const struct node_claims *c)
{
    n->claims = c;
}
