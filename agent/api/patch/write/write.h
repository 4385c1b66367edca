/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write - a whole write of an object, as an apiserver does it between reading the request and validating the
 * result.
 *
 * In this order: the patch or apply; decoding (types, unknown fields); names, uid and resourceVersion; fields
 * that the path cannot change (status, or all except status); defaults; immutable fields; managers;
 * generation.  The caller validates the values by the rules of the kind, sets uid, creationTimestamp and
 * resourceVersion, and stores it, unless *ret_same.
 *
 * Pure; any thread.  Results and failures as in patch.h.
 */
#ifndef AGENT_API_PATCH_WRITE_WRITE_H
#define AGENT_API_PATCH_WRITE_WRITE_H
#include "agent/api/patch/apply/apply.h"

enum api_write_type {
    API_WRITE_CREATE, /* POST: the body is the object */
    API_WRITE_UPDATE, /* PUT */
    API_WRITE_JSON,   /* PATCH, by Content-Type */
    API_WRITE_MERGE,
    API_WRITE_STRATEGIC,
    API_WRITE_APPLY,
};

enum api_field_validation {
    API_FIELDS_WARN, /* the default */
    API_FIELDS_IGNORE,
    API_FIELDS_STRICT,
};

struct api_write {
    enum api_write_type type;
    const struct api_patch_kind *kind;
    const char *name;      /* of the path; NULL with CREATE */
    const char *namespace; /* of the path; NULL: the kind has none */
    struct api_manager by;
    enum api_field_validation validation;
    const json_t *strict; /* what else strict decoding refuses, a list of texts; borrowed, may be NULL */
    bool force;           /* of an apply */
};

/*
 * `live` is NULL if there is no object: CREATE and APPLY make one.  Warnings ("unknown field \"spec.x\"") are
 * appended to the list `warnings`.  *ret_same: the result is the live object, and nothing is to be stored.
 */
enum err_code api_write(const struct api_write *w, const json_t *live, const json_t *body, json_t *warnings,
                        json_t **ret, bool *ret_same, json_t **ret_status, struct err *e) MUST_CHECK;

/* ---- decode.c, defaults.c, update_rules.c and others: parts of it ---- */

/*
 * Converts the object to the form that Go's decoder and encoder produce: unknown fields are removed and added
 * to the list `unknown` ("spec.x"), nulls and empty values of fields with omitempty are removed, quantities
 * are canonical. *ret_why: why it cannot be decoded, a JSON string, a new reference; then the result is
 * ERR_INVALID.  `converted`: uses the messages of a strategic merge patch, whose result is not a text.
 */
enum err_code api_object_decode(const struct api_patch_kind *kind, json_t *object, bool converted,
                                json_t *unknown, json_t **ret_why, struct err *e) MUST_CHECK;

/* The defaults of the kind: those that the field manager owns with the rest of its object, and those that
 * kube-apiserver allocates when the managers are known; the last function sets both. */
enum err_code api_object_default_own(const struct api_patch_kind *kind, json_t *object,
                                     struct err *e) MUST_CHECK;
enum err_code api_object_allocate(const struct api_patch_kind *kind, json_t *object,
                                  struct err *e) MUST_CHECK;
enum err_code api_object_default(const struct api_patch_kind *kind, json_t *object, struct err *e) MUST_CHECK;

/* Removes defaults that `said`, the object as the client sent it, does not contain, if defaulting would
 * restore the same values. False: out of memory. */
bool api_object_bare(const struct api_patch_kind *kind, json_t *object, const json_t *said);

/* Adds the causes for which metadata names no valid finalizers or owners. False: out of memory. */
bool api_reference_rules(const json_t *meta, json_t *causes);
/* As api_update_rules(), of the subresources resize and ephemeralcontainers of a Pod. */
bool api_resize_rules(const json_t *live, const json_t *object, json_t *causes);
bool api_ephemeral_rules(const json_t *live, const json_t *object, json_t *causes);
/*
 * What an update of the object itself (not of a subresource) may change: appends a cause for each rule that
 * is broken. Of Pods, immutable ConfigMaps and Secrets, and the selectors of apps/v1.  False: out of memory.
 */
bool api_update_rules(const struct api_patch_kind *kind, const json_t *live, const json_t *object,
                      json_t *causes) MUST_CHECK;

/* 422 PatchOptions: the fault in the options of a PATCH; *ret_status stays NULL if nothing is.  NULL:
 * not given. */
enum err_code api_patch_options_check(const char *field_manager, const char *field_validation,
                                      const char *dry_run, const char *force, bool apply, json_t **ret_status,
                                      struct err *e) MUST_CHECK;
#endif
