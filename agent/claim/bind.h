/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind - chooses the PersistentVolume for a claim. Pure. Rules of Kubernetes' binder (pkg/controller/volume/
 * persistentvolume: syncUnboundClaim, findByClaim; component-helpers: FindMatchingVolume):
 *
 * - A volume whose claimRef names the claim takes precedence, whatever its class, if it is large enough and
 *   has the volumeMode and the access modes.
 * - Other volumes must be free and on this node, have the claim's class, attributes class and volumeMode, all
 *   of its access modes and at least its size, and labels that match its selector. Of these, volumes with the
 *   fewest access modes come first, then the smallest, then the first by name.
 * - A claim that names its volume gets that volume or none. Its selector is then ignored, and if the volume
 *   names the claim as well, so are all other rules.
 */
#ifndef AGENT_CLAIM_BIND_H
#define AGENT_CLAIM_BIND_H
#include "agent/api/generic.h"

struct claim_volume {
    const struct api_generic *object; /* a PersistentVolume; borrowed */
    bool bound;                       /* bound to another claim, or released; determined by the caller */
    bool going;                       /* its manifest was removed */
    bool foreign;                     /* its nodeAffinity excludes this node */
};

/* A claim's request, in addition to struct api_claim. */
struct claim_wish {
    const char *namespace_, *name, *uid;
    const struct api_claim *claim;
};

/* Whether the volume fits; ERR_PRECONDITION has the reason if not. */
enum err_code claim_fits(const struct claim_wish *w, const struct claim_volume *v, struct err *e) MUST_CHECK;
/* The best of `n`; NULL: none fits. */
const struct claim_volume *claim_best(const struct claim_wish *w, const struct claim_volume *v, size_t n);
/* Whether a folder may be created for the claim if no volume fits: the claim names neither a volume nor
 * labels, wants no block device, and its class is not "", which requests an existing volume. */
bool claim_may_be_made(const struct claim_wish *w);
bool claim_is_for_one_pod(const struct api_claim *c); /* ReadWriteOncePod */
#endif
