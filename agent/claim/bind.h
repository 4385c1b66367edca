/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind - which PersistentVolume fits a claim. Pure. Rules of Kubernetes' binder (pkg/controller/volume/
 * persistentvolume: syncUnboundClaim, findByClaim; component-helpers: FindMatchingVolume):
 *
 * - A volume whose claimRef names the claim is taken before all others, whatever its class, if it is large
 *   enough and has the volumeMode and the access modes.
 * - Others have to be free and of this node, of the claim's class, class of attributes and volumeMode, have
 * all of its access modes and at least its size, and labels that match its selector. Of those the volumes
 * with the fewest access modes come first, then the smallest, then the first by name.
 * - A claim that names its volume gets that one or none. Then the selector does not count, and if the volume
 *   names the claim, too, nothing else does.
 */
#ifndef AGENT_CLAIM_BIND_H
#define AGENT_CLAIM_BIND_H
#include "agent/api/generic.h"

struct claim_volume {
    const struct api_generic *object; /* a PersistentVolume; borrowed */
    bool bound;                       /* to another claim, or released by one: the caller's business */
    bool going;                       /* its manifest was removed */
    bool foreign;                     /* by its nodeAffinity it is not on this node */
};

/* What a claim wants besides struct api_claim. */
struct claim_wish {
    const char *namespace_, *name, *uid;
    const struct api_claim *claim;
};

/* Whether it fits; *e says why not (ERR_PRECONDITION). */
enum err_code claim_fits(const struct claim_wish *w, const struct claim_volume *v, struct err *e) MUST_CHECK;
/* The best of `n`; NULL: none fits. */
const struct claim_volume *claim_best(const struct claim_wish *w, const struct claim_volume *v, size_t n);
/* Whether a folder may be made for it where no volume fits: it names neither a volume nor labels of one, it
 * wants no block device, and its class is not "", which asks for a volume that somebody made. */
bool claim_may_be_made(const struct claim_wish *w);
bool claim_is_for_one_pod(const struct api_claim *c); /* ReadWriteOncePod */
#endif
