/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/claim_link.h"

#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/pod.h"

#include <stdio.h>

static const char no_claims[] = "claims need a storage driver of the cluster";

int claim_name(const struct pod *p, const struct api_volume *v, char *ret, size_t size)
{
    return v->ephemeral ? snprintf(ret, size, "%s-%s", p->api->meta.name, v->name)
                        : snprintf(ret, size, "%s", v->claim_name);
}

/* In a cluster: the apiserver's state of the claim. */
static enum err_code take_served(const struct pod *p, const struct api_volume *v, struct err *e)
{
    struct driver_bound bound = { 0 };
    char name[256];

    if (driver_bound(p, v, &bound, e) == ERR_OK)
        return ERR_OK;
    claim_name(p, v, name, sizeof(name));
    return err_wrap(e, "error processing PVC %s/%s", p->api->meta.namespace, name);
}

static enum err_code place_served(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                                  struct err *e)
{
    struct driver_bound bound = { 0 };

    if (driver_bound(p, v, &bound, e) != ERR_OK)
        return e->code;
    if (bound.volume->pv == NULL)
        return err_set(e, ERR_NOT_FOUND, "PersistentVolume \"%.200s\" is invalid", bound.volume->meta.name);
    *ret = (struct claim_place){ .read_only = v->claim_readonly, .bytes = (uint64_t)bound.claim_bytes };
    claim_place_of(bound.volume, ret);
    return ERR_OK;
}

static bool is_served(const struct pod *p)
{
    return p->api->origin == API_FROM_SERVER && p->node->driver_link != NULL;
}

enum err_code claim_take(struct pod *p, const struct api_volume *v, struct err *e)
{
    const struct node_claims *c = p->node->claims;

    if (is_served(p))
        return take_served(p, v, e);
    return c != NULL ? c->take(p, v, c->arg, e) : err_set(e, ERR_PRECONDITION, "%s", no_claims);
}

enum err_code claim_place(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                          struct err *e)
{
    const struct node_claims *c = p->node->claims;

    if (is_served(p))
        return place_served(p, v, ret, e);
    return c != NULL ? c->place(p, v, ret, c->arg, e) : err_set(e, ERR_NOT_FOUND, "%s", no_claims);
}

void claim_grown(const struct pod *p, const struct api_volume *v, uint64_t bytes)
{
    const struct node_claims *c = p->node->claims;

    if (c != NULL && c->grown != NULL)
        c->grown(p, v, bytes, c->arg);
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
