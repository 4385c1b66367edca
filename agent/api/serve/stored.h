/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored - from the result of a write (agent/api/patch/write/write.h) to the object that its manifest file
 * has, and from the daemon's refusal of it to an apiserver's words.  Pure, except for the clock and random
 * numbers; any thread.
 */
#ifndef AGENT_API_SERVE_STORED_H
#define AGENT_API_SERVE_STORED_H
#include "agent/api/schema/kinds.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* Sets what an apiserver sets of a new object.  False: out of memory. */
bool api_stored_new(const struct api_kind_row *kind, json_t *object) MUST_CHECK;

/* Adds to an object of a dry run the members that the daemon shows for a stored one. False: out of memory. */
bool api_stored_try(const struct api_kind_row *kind, json_t *object) MUST_CHECK;

/* Removes the members that the node sets, which are not stored in the file.  `is_new`: there was no such
 * object before. */
void api_stored_strip(const struct api_kind_row *kind, json_t *object, bool is_new);

/* A Status for the answer `http` to a write of /store/object (agent/pod/show/write.h): a new reference, or
 * NULL when out of memory.  `object`: the one in the request; it and `body` may be NULL. */
json_t *api_stored_refusal(const struct api_kind_row *kind, const char *name, const json_t *object, int http,
                           const json_t *body);
#endif
