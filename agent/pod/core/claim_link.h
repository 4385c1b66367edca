/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_link - the volume behind the claim of a pod; agent/claim sets it for pods of the folder. Rooms ask
 * here and know no more of claims:
 *
 *     claim_take(p, v, &e)         ERR_PRECONDITION: the pod waits; e has the reason
 *     claim_place(p, v, &at, &e)   where the volume is, once it was taken
 *
 * at.volume is the PersistentVolume, with its source (at.volume->pv->storage, agent/api/storage.h); NULL: the
 * claim has a folder of the agent. A source that is a path of this node (hostPath) is in at.path, too;
 * any other has to be mounted by the pod's volumes, and at.path is NULL. Loop thread only.
 */
#ifndef AGENT_POD_CORE_CLAIM_LINK_H
#define AGENT_POD_CORE_CLAIM_LINK_H
#include "agent/api/generic.h"
#include "base/error.h"

struct node;
struct pod;

struct claim_place {
    const struct api_generic *volume; /* borrowed until the loop turns; api_generic_ref() keeps it */
    const char *path;                 /* on the host; borrowed until the loop turns; NULL: to be mounted */
    const char *type;                 /* of the check, as a hostPath's; NULL: there is none */
    uint64_t bytes;                   /* the claim's status.capacity */
    bool block;                       /* volumeMode Block */
    bool read_only;                   /* set in the pod's volume */
};

/* The claim has a folder of the agent's own. */
static inline bool claim_place_is_own(const struct claim_place *at)
{
    return at->volume == NULL && at->path != NULL && at->type == NULL;
}

struct node_claims {
    /* Takes the claim of a volume for the pod: binds it, makes its folder. May be repeated. ERR_PRECONDITION:
     * it waits, *e has the reason; volumes_claims_changed() is called when the wait may be over. */
    enum err_code (*take)(struct pod *p, const struct api_volume *v, void *arg, struct err *e);
    /* ERR_NOT_FOUND: it is not bound. */
    enum err_code (*place)(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                           void *arg, struct err *e);
    /* The volume of a claim has this size now. May be NULL. */
    void (*grown)(const struct pod *p, const struct api_volume *v, uint64_t bytes, void *arg);
    void *arg;
};

/* "data", or of an ephemeral volume "<pod>-<volume>"; snprintf semantics. */
int claim_name(const struct pod *p, const struct api_volume *v, char *ret, size_t size);
enum err_code claim_take(struct pod *p, const struct api_volume *v, struct err *e) MUST_CHECK;
enum err_code claim_place(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                          struct err *e) MUST_CHECK;
void claim_grown(const struct pod *p, const struct api_volume *v, uint64_t bytes);
/* volume, path, type and block of a PersistentVolume, for those that answer. */
void claim_place_of(const struct api_generic *volume, struct claim_place *ret);
/* Before pods start. The struct is borrowed while the node exists. */
void node_set_claims(struct node *n, const struct node_claims *c);
#endif
