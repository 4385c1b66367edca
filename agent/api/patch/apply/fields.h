/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields - sets of field paths, in the form of managedFields (FieldsV1): an object whose names are path
 * elements and whose values are the sets below.  Private to the room.
 *
 *   "f:name"              a member of an object
 *   "k:{\"name\":\"a\"}"  the element of a list with these keys
 *   "v:1"                 an element of a set
 *
 * An element is itself in the set if its value is {} or has the member "."; other elements only lead to
 * members of the set. A set has no other values.  The keys of k: and v: are canonical: names in order, no
 * blanks, Go's escapes.
 *
 * Results are new references which share nothing that may change; NULL: out of memory.
 */
#ifndef AGENT_API_PATCH_APPLY_FIELDS_H
#define AGENT_API_PATCH_APPLY_FIELDS_H
#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

bool fields_has(const json_t *set, const char *element);
const json_t *fields_below(const json_t *set, const char *element); /* borrowed; NULL: nothing is below it */
bool fields_empty(const json_t *set);

/* Puts an element into a set that is being built.  `below` is stolen, NULL is empty; nothing is put where
 * neither the element nor anything below it is in the set.  False: out of memory. */
bool fields_put(json_t *set, const char *element, bool member, json_t *below);

json_t *fields_union(const json_t *a, const json_t *b);
json_t *fields_intersection(const json_t *a, const json_t *b);
json_t *fields_difference(const json_t *a, const json_t *b); /* each path on its own */
json_t *fields_without(const json_t *a, const json_t *b);    /* of b's paths with all below them */

/* A set from outside: checked, in canonical form.  NULL: it is none, or no memory. */
json_t *fields_decode(const json_t *v);

/* The element for these keys, or for a value: malloc'ed; NULL: out of memory. */
char *fields_key(const json_t *keys);
char *fields_value(const json_t *value);

/* Calls fn with each path of the set in readable form, `.spec.containers[name="a"].image`, in Go's order.
 * False: out of memory, or fn returned false. */
typedef bool (*fields_fn)(void *arg, const char *path);
bool fields_each(const json_t *set, fields_fn fn, void *arg);

/* Appends one element as people read it. */
void fields_add_text(struct buf *b, const char *element);
#endif
