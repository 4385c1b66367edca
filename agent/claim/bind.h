/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind - which PersistentVolume fits a claim. Pure. Rules of Kubernetes' binder (pkg/controller/volume/
 * persistentvolume, FindMatchingVolume): the volume is of the claim's class, has all of its access modes and
 * at least its size, its labels match the claim's selector, and it names no other claim; the smallest that
 * fits, of equal ones the first by name. A claim that names its volume gets that one or none.
 */
#ifndef AGENT_CLAIM_BIND_H
#define AGENT_CLAIM_BIND_H
#include "agent/api/generic.h"

#include <jansson.h>

struct claim_volume { /* a PersistentVolume, as its manifest has it; borrowed from the object */
    const char *name, *storage_class;     /* "": none */
    const char *path, *type;              /* type: the check of a hostPath; a local volume is a "Directory" */
    const char *for_namespace, *for_name; /* claimRef; NULL: none */
    const json_t *access_modes;
    const struct api_kvs *labels;
    struct quantity size;
    bool bound; /* to another claim: the caller's business */
};

/* What a claim wants besides struct api_claim. */
struct claim_wish {
    const char *namespace_, *name;
    const struct api_claim *claim;
    const struct api_label_selector *selector; /* NULL: none */
};

/* ERR_PRECONDITION: a volume that no pod of this node can use, and why. */
enum err_code claim_volume_read(const struct api_generic *object, const json_t *json,
                                struct claim_volume *ret, struct err *e) MUST_CHECK;
/* Whether it fits; *e says why not (ERR_PRECONDITION). */
enum err_code claim_fits(const struct claim_wish *w, const struct claim_volume *v, struct err *e) MUST_CHECK;
/* The best of `n`; NULL: none fits. */
const struct claim_volume *claim_best(const struct claim_wish *w, const struct claim_volume *v, size_t n);
/* Whether a folder may be made for it where no volume fits: it names neither a volume nor labels of one, and
 * its class is not "", which asks for a volume that somebody made. */
bool claim_may_be_made(const struct claim_wish *w);
bool claim_is_for_one_pod(const struct api_claim *c); /* ReadWriteOncePod */
#endif
