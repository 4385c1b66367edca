/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_meta - what an object's metadata has that a node does not act on and clients of the local API need
 * again: creationTimestamp, managedFields, ownerReferences, finalizers, generateName, and that it is being
 * deleted while finalizers hold it. Objects have it as the
 * text of one JSON object (struct api_meta). Pure; any thread.
 */
#ifndef AGENT_API_KEPT_META_H
#define AGENT_API_KEPT_META_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* Of an object as it was written. *ret: malloc'ed; NULL: it has nothing of that. */
enum err_code api_kept_meta_of(const json_t *object, char **ret, struct err *e) MUST_CHECK;
/* Adds missing members to a metadata. `kept` NULL: nothing. False: out of memory. */
bool api_kept_meta_add(json_t *meta, const char *kept) MUST_CHECK;
/* Whether finalizers hold the object back when it is deleted; those of Kubernetes' own controllers do not. */
bool api_meta_is_held(const json_t *meta);
/* Whether the object is being deleted, and is held. */
bool api_kept_meta_deleting(const char *kept);
#endif
