/* SPDX-License-Identifier: Apache-2.0 */
/* tree - helpers that the patches share: the limit of nesting, and the form of a failure.  Private to the
 * room. */
#ifndef AGENT_API_PATCH_TREE_H
#define AGENT_API_PATCH_TREE_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Levels of objects and lists below and with `v`: 0 for a scalar, at most `max + 1`. */
size_t tree_depth(const json_t *v, size_t max);

/* Hands a Status over: *ret_status takes `status`, *e its message.  A NULL status is a lack of memory. */
enum err_code tree_fail(json_t *status, json_t **ret_status, struct err *e);

/* Fails with 400 unless `v` is at most API_PATCH_DEPTH levels deep.  `what` is for the message. */
enum err_code tree_bounded(const json_t *v, const char *what, json_t **ret_status, struct err *e) MUST_CHECK;

/* "array", "string", ...: as Go's decoder names a JSON value. */
const char *tree_go_type(const json_t *v);
#endif
