/* SPDX-License-Identifier: Apache-2.0 */
/* schema_internal - what the walker (schema.c) and the values it meets (schema_value.c) share. */
#ifndef AGENT_API_SCHEMA_INTERNAL_H
#define AGENT_API_SCHEMA_INTERNAL_H
#include "agent/api/internal.h"

/* The object the walk is in: its structs, and what support was decided further up. */
struct walk {
    struct api_check *c;
    void *out, *parent; /* structs; NULL: check only */
    bool quiet;         /* the whole is refused or ignored already: no more about support */
};

/* Where the value of a row goes: the field `at` (an AT()) of the struct; NULL: nowhere. */
void *api_slot(const struct walk *w, const struct api_row *row, size_t at);
void api_set_given(const struct walk *w, const struct api_row *row); /* the row's has flag */
void api_set_text(const struct walk *w, const struct api_row *row, const char *text);

/* Report and say false when v is something else. */
bool api_is_list(struct api_check *c, const json_t *v);
bool api_is_object(struct api_check *c, const json_t *v);

/* Any value but an object or a list of objects: checks, copies into the slot, puts canonical text into
 * `holder`. */
bool api_walk_plain(const struct walk *w, const struct api_row *row, json_t *holder, json_t *v);
#endif
