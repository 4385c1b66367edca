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
#include "agent/api/patch/kinds.h"
#include "agent/api/status.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

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

/* ---- managers of fields ---- */

/* Who writes, for metadata.managedFields. */
struct api_manager {
    const char *name;        /* the field manager: at most 128 bytes, not empty */
    const char *subresource; /* "status", "scale", ...; NULL: none */
    const char *now;         /* "2030-01-01T00:00:00Z" */
};

/*
 * Server-side apply of a configuration.  `live` is NULL if there is no object: one is made of the
 * configuration. *ret has no defaults yet, and metadata.managedFields is as it is to be stored.  409: other
 * managers have fields with other values, and `force` is not set; 500: the configuration does not fit the
 * kind's types; 400: it is of another kind, or has managedFields.  Names, uid and resourceVersion are the
 * caller's to compare.
 *
 * An apply that changes no value sets no time; see api_keep_times().
 */
enum err_code api_apply(const struct api_patch_kind *kind, const struct api_manager *by, bool force,
                        const json_t *live, const json_t *config, json_t **ret, json_t **ret_status,
                        struct err *e) MUST_CHECK;

/*
 * Sets metadata.managedFields of `object`, which a create (`live` is NULL), an update or one of the three
 * patches made, with its defaults.  A list that the object brings replaces the live one's if it is valid; []
 * and [{}] end the managers of this object.
 */
enum err_code api_update_managed(const struct api_patch_kind *kind, const struct api_manager *by,
                                 const json_t *live, json_t *object, struct err *e) MUST_CHECK;

/*
 * The last step of a write: *ret_same if `object` differs from `live` in nothing, or in times of managers
 * alone, which are set back.  Then nothing is to be stored and resourceVersion stays.
 */
enum err_code api_keep_times(const json_t *live, json_t *object, bool *ret_same, struct err *e) MUST_CHECK;
#endif
