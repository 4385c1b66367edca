/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status - Status objects (meta.k8s.io/v1) of failures, in the apiserver's words.
 *
 * Each function returns a new reference, or NULL when out of memory.  Pure: any thread.
 */
#ifndef AGENT_API_STATUS_H
#define AGENT_API_STATUS_H
#include "base/error.h"

#include <jansson.h>

/* A failure with this HTTP code.  `reason` is "BadRequest", "Invalid", ...; NULL: none (an internal error).
 * `details` is stolen; NULL: none. */
json_t *api_status(int code, const char *reason, json_t *details, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* One cause of a 422: `reason` is "FieldValueInvalid" and the like, `field` a path such as "spec.replicas".
 */
json_t *api_status_cause(const char *reason, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* 422 of an object, with its message made of the causes (a list, stolen): `ConfigMap "c" is invalid: ...`. */
json_t *api_status_invalid(const char *group, const char *kind, const char *name, json_t *causes);

/* 404 `configmaps "c" not found`, and 409 `Operation cannot be fulfilled on configmaps "c": <why>`.  A why of
 * NULL is the one of a stale resourceVersion. */
json_t *api_status_not_found(const char *group, const char *plural, const char *name);
json_t *api_status_conflict(const char *group, const char *plural, const char *name, const char *why);

/* 422 of a patch's result that cannot be decoded: ` "" is invalid: patch: Invalid value: "<shown>": <why>`.
 */
json_t *api_status_undecodable(const char *shown, const char *why);

/* 422 of JSON patch: the operations do not apply. */
json_t *api_status_not_applicable(void);
#endif
