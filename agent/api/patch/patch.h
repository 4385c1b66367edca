/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch - changes of an API object as an apiserver makes them.
 *
 * Pure: values in, values out; callable on any thread.  `live` and `patch` are borrowed and never changed;
 * *ret is a new reference.  A failure is a Status object (status.h) in *ret_status, a new reference, with the
 * apiserver's code, reason and words: then the result is ERR_INVALID and *e has the message.  ERR_EXHAUSTED:
 * out of memory, *ret_status is not set.
 *
 * Bounds: API_PATCH_DEPTH levels of nesting, of all three values; API_PATCH_OPS operations and
 * API_PATCH_COPY_MAX bytes copied by JSON patch, as in the apiserver.  The size of the texts is the caller's
 * (3 MiB there).
 *
 * The patches change JSON only: names, uid, unknown fields and defaults are checked and set afterwards.
 */
#ifndef AGENT_API_PATCH_PATCH_H
#define AGENT_API_PATCH_PATCH_H
#include "agent/api/patch/kinds/kinds.h"
#include "agent/api/status.h"
#include "base/error.h"

#include <jansson.h>

#define API_PATCH_DEPTH 256                  /* our kinds need 30; JSON patch could nest without end */
#define API_PATCH_OPS 10000                  /* maxJSONPatchOperations of the apiserver */
#define API_PATCH_COPY_MAX (3 * 1024 * 1024) /* bytes of JSON text, its JSONPatchMaxCopyBytes */

/*
 * RFC 6902, as the apiserver's library understands it: all or nothing; "-1" counts from the end of a list;
 * `replace`, `copy` and `test` of a member that is missing treat it as null.
 */
enum err_code api_patch_json(const json_t *live, const json_t *patch, json_t **ret, json_t **ret_status,
                             struct err *e) MUST_CHECK;

/* RFC 7386; `patch` must be an object. */
enum err_code api_patch_merge(const json_t *live, const json_t *patch, json_t **ret, json_t **ret_status,
                              struct err *e) MUST_CHECK;

/*
 * Strategic merge patch: lists merge by the merge keys of the kind's tables, and the patch may have
 * directives ($patch, $retainKeys, $setElementOrder/x, $deleteFromPrimitiveList/x).  A merged list has at
 * most API_LIST_MAX elements with the patch's.  null changes nothing.  500: what the apiserver's library has
 * no better code for.
 */
enum err_code api_patch_strategic(const struct api_patch_kind *kind, const json_t *live, const json_t *patch,
                                  json_t **ret, json_t **ret_status, struct err *e) MUST_CHECK;
#endif
