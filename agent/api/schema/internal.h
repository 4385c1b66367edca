/* SPDX-License-Identifier: Apache-2.0 */
/* internal - shared by the walker (schema.c) and its values (schema_value.c). */
#ifndef AGENT_API_SCHEMA_INTERNAL_H
#define AGENT_API_SCHEMA_INTERNAL_H
#include "agent/api/schema/schema.h"

/* The object being walked: its structs, and the support determined by its parents. */
struct walk {
    struct api_check *c;
    void *out, *parent; /* structs; NULL: check only */
    bool quiet;         /* the whole object is refused or ignored already: report no support */
};

/* A row's destination: the field `at` (an AT()) of the struct; NULL: none. */
void *api_slot(const struct walk *w, const struct api_row *row, size_t at);
void api_set_given(const struct walk *w, const struct api_row *row); /* the row's has flag */
void api_set_text(const struct walk *w, const struct api_row *row, const char *text);

/* Otherwise report it and return false. */
bool api_is_list(struct api_check *c, const json_t *v);
bool api_is_object(struct api_check *c, const json_t *v);

/* Any value except an object or a list of objects: checks it, copies it to the slot, puts canonical text into
 * `holder`. */
bool api_walk_plain(const struct walk *w, const struct api_row *row, json_t *holder, json_t *v);
#endif
