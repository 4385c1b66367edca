/* SPDX-License-Identifier: Apache-2.0 */
/*
 * about - what types and fields mean, in a sentence each: the descriptions of `coracle explain pod.spec` and
 * of the OpenAPI documents that kubectl reads. Each row of a table has a line in about_*.c; a unit test
 * misses it.
 */
#ifndef AGENT_API_SCHEMA_ABOUT_H
#define AGENT_API_SCHEMA_ABOUT_H
#include "agent/api/schema/schema.h"

struct api_about {
    const char *schema; /* the name of the table; "": any */
    const char *field;  /* "": the type itself */
    const char *text;
};
/* Terminated by a NULL schema. */
extern const struct api_about api_about_object[], api_about_pod[], api_about_container[], api_about_rules[],
    api_about_volume[], api_about_work[], api_about_storage[];

/* "" if there is none. `schema` is the table that has the row, not one that is based on it. */
const char *api_about_type(const char *schema);
const char *api_about_field(const struct api_schema *schema, const char *field);

/* The table that has the row: the schema, or one that it is based on. */
const struct api_schema *api_row_holder(const struct api_schema *schema, const struct api_row *row);

/* The description of a field, and its treatment unless it is simply "acted on". */
void api_add_about(struct buf *b, const struct api_schema *schema, const struct api_row *row);
#endif
