/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed - values with their types from the tables, for server-side apply
 * (structured-merge-diff).  Private to the room.
 *
 * A granular object or list is owned and merged member by member, an atomic one as one value.  Lists are
 * granular if they have keys, or are sets.  A value that no table describes (API_ANY) has the type of its
 * value: objects are granular, lists atomic.
 *
 * Functions return false on failure, with a Status unless out of memory.
 */
#ifndef AGENT_API_PATCH_APPLY_TYPED_H
#define AGENT_API_PATCH_APPLY_TYPED_H
#include "agent/api/schema/schema.h"

#include <jansson.h>
#include <stdbool.h>

enum typed_form {
    TYPED_ANY,
    TYPED_STRING,
    TYPED_NUMBER,
    TYPED_BOOL,
    TYPED_SCALAR, /* of any kind: quantities, int or string */
    TYPED_OBJECT, /* of a table */
    TYPED_MAP,    /* of `element`s */
    TYPED_LIST,
};

struct typed {
    enum typed_form form;
    bool atomic;
    const char *keys;               /* list: "a,b"; NULL with !atomic: a set */
    const struct api_schema *table; /* object, or a list's elements; NULL: scalars */
    enum typed_form element;        /* map, list of scalars */
};

struct typed typed_root(const struct api_schema *table);

/* The problems of a value, as texts ".spec.x: field not declared in schema"; duplicates: elements with the
 * same keys are none.  *ret is a list, a new reference.  False: out of memory. */
bool typed_check(const struct typed *t, const json_t *v, bool duplicates, json_t **ret);

/* The fields that a value has. */
json_t *typed_fields(const struct typed *t, const json_t *v);

/* What differs; each is a set. */
struct typed_change {
    json_t *removed, *modified, *added;
};
bool typed_compare(const struct typed *t, const json_t *from, const json_t *to, struct typed_change *ret);
void typed_change_done(struct typed_change *c);

/* `config` merged into `live`: a new reference that may share parts with both. */
json_t *typed_merge(const struct typed *t, const json_t *live, const json_t *config);

/* Without the members and elements of a set. */
json_t *typed_remove(const struct typed *t, const json_t *v, const json_t *set);

/* The set, and the members of tables that lead to its paths. */
json_t *typed_with_named(const struct typed *t, const json_t *set);

/* ---- for the files of typed alone ---- */
struct typed typed_member(const struct typed *t, const char *name, bool *ret_known);
struct typed typed_element(const struct typed *t);
/* The type of a value that the table does not describe. */
struct typed typed_of_value(const struct typed *t, const json_t *v);
/* The path element of a list's element; NULL: it has none (*ret_missing), or out of memory. */
char *typed_element_path(const struct typed *t, const json_t *element, bool *ret_missing);
#endif
