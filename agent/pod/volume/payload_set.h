/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_set - the payload volumes of a pod, built together and then written together: on the loop, or on
 * the pool if that would take too long on the loop.  A set holds the objects that its files borrow from, so
 * the store may change meanwhile.  Made and freed on the loop thread; the pod must outlive it.
 */
#ifndef AGENT_POD_VOLUME_PAYLOAD_SET_H
#define AGENT_POD_VOLUME_PAYLOAD_SET_H
#include "agent/pod/volume/payload.h"

struct payload_result { /* of a volume */
    struct err e;       /* of payload_build() or vol_payload_publish() */
    bool changed;       /* the visible content */
    bool kept;          /* a superseded version: tidy later */
    char *overlaps;     /* files hidden by later sources; NULL: none */
    struct boot_time renew_at;
};

struct payload_set;

/* Builds the volumes that containers mount. NULL: no memory. */
struct payload_set *payload_set_new(struct pod *p);
/* A set to be tidied instead of written. */
struct payload_set *payload_set_new_tidy(struct pod *p);
/* Whether writing or tidying it, or removing its old version, would block the loop for too long. *entries:
 * the maximum number of entries in the pod's volumes, kept by the caller between calls; 0: unknown. Only
 * then, or when it has grown large, are the folders walked: an edit in a hundred pods must not visit each of
 * them. */
bool payload_set_is_large(const struct payload_set *s, size_t *entries);
/* Writes or tidies the set.  Blocks; any thread. */
void payload_set_write(struct payload_set *s);
/*
 * The result for the volume with this index in the pod's manifest; NULL if it is not in the set. Valid until
 * the set is freed.
 */
const struct payload_result *payload_set_result(const struct payload_set *s, size_t volume);
void payload_set_free(struct payload_set *s); /* NULL is fine */
SCOPE_DEFINE(struct payload_set, payload_set_free)
#endif
