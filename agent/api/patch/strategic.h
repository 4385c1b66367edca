/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategic - shared by the files of the strategic merge patch: strategic.c merges maps,
 * strategic_list.c lists, strategic_order.c puts elements in order.  Private to the room.
 *
 * Functions return a new reference, which may share parts with their arguments, and do not change the
 * arguments. NULL: the run has the error.
 */
#ifndef AGENT_API_PATCH_STRATEGIC_H
#define AGENT_API_PATCH_STRATEGIC_H
#include "agent/api/schema/schema.h"

#include <jansson.h>
#include <stdbool.h>

#define DIRECTIVE "$patch"
#define RETAIN_KEYS "$retainKeys"
#define DELETE_FROM "$deleteFromPrimitiveList"
#define ELEMENT_ORDER "$setElementOrder"

struct strategic_run {
    json_t *status; /* owned; of the failure; NULL while there is none, or out of memory */
};

/* How a list merges: `row` is the table's; NULL: it has none. */
struct strategic_list {
    const char *merge_key; /* NULL: of scalars */
    bool merges;           /* otherwise the patch's list replaces it */
    const struct api_schema *element;
};

struct strategic_list strategic_list_of(const struct api_row *row);

/* Fails the run with a Status.  NULL, so that callers can return it.  `status` is stolen. */
json_t *strategic_fail(struct strategic_run *run, json_t *status);
json_t *strategic_fail_format(struct strategic_run *run, const char *directive);
json_t *strategic_fail_key(struct strategic_run *run, const json_t *map, const char *merge_key);

/* Merges the patch into a map (NULL: an empty one).  With a schema of NULL no list is merged. */
json_t *strategic_map(struct strategic_run *run, const struct api_schema *schema, const json_t *map,
                      const json_t *patch);

/* ---- strategic_order.c ---- */
/* The identity of an element: its merge key's value, or itself. Borrowed; NULL: it has none. */
const json_t *strategic_identity(const struct strategic_list *how, const json_t *element);
bool strategic_same(const json_t *a, const json_t *b); /* of two identities; NULL is like no other */
/* The index of the first element with the identity of this one; -1: none. */
ssize_t strategic_find(const struct strategic_list *how, const json_t *list, const json_t *element);
/* Appends the elements of `from` that are (`in`) or are not among `names`. False: out of memory. */
bool strategic_take(const struct strategic_list *how, json_t *to, const json_t *from, const json_t *names,
                    bool in);
/* The elements of `merged`: those that `order` names in its order, the others in that of `live`. NULL: out of
 * memory. */
json_t *strategic_in_order(const struct strategic_list *how, const json_t *merged, const json_t *order,
                           const json_t *live);

/* ---- strategic_list.c ---- */
/* Merges a patch's list; `deletes`: it is one of $deleteFromPrimitiveList. */
json_t *strategic_list(struct strategic_run *run, const struct strategic_list *how, const json_t *list,
                       const json_t *patch, bool deletes);

/* With $setElementOrder: `list` or `patch` may be NULL, not both. */
json_t *strategic_ordered_list(struct strategic_run *run, const struct strategic_list *how,
                               const json_t *list, const json_t *patch, const json_t *order);

/* A value that takes the place of nothing: without directives and nulls.  *ret NULL: it is a directive
 * itself. */
bool strategic_clean(struct strategic_run *run, const json_t *v, bool nulls, json_t **ret);
#endif
