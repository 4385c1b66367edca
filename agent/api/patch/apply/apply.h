/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply - server-side apply, and the managers of fields.
 *
 * Pure; any thread. Results and failures as in patch.h.
 */
#ifndef AGENT_API_PATCH_APPLY_APPLY_H
#define AGENT_API_PATCH_APPLY_APPLY_H
#include "agent/api/patch/patch.h"

#include <stdbool.h>

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
