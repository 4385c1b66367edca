/* SPDX-License-Identifier: Apache-2.0 */
/* decl_internal - declarations shared by decl_*.c: the decoder's position, and values that several files
 * read. */
#ifndef AGENT_DECLARED_DECL_INTERNAL_H
#define AGENT_DECLARED_DECL_INTERNAL_H
#include "agent/api/check.h"
#include "agent/declared/decl.h"

#include <jansson.h>

struct decl_parser {
    struct api_check c;
    struct arena *arena;
    const char *domain; /* NULL: none */
};

struct decl_field {
    const char *name; /* NULL: the end of the table */
    void (*read)(struct decl_parser *p, const json_t *v, void *to);
};

/* ---- decl_read.c; problems are reported, and memory is the arena's ---- */
/* Unknown fields are problems; null equals an absent field. */
void decl_read_fields(struct decl_parser *p, const struct decl_field *fields, const json_t *object, void *to);
/* The elements of a list, in memory of `size` bytes each; NULL after a problem. */
void *decl_read_list(struct decl_parser *p, const json_t *list, size_t max, size_t size,
                     void (*read)(struct decl_parser *p, const json_t *v, void *to), size_t *ret_n);
void *decl_alloc(struct decl_parser *p, size_t n); /* zeroed; NULL: out of memory, which is recorded */
const char *decl_read_text(struct decl_parser *p, const json_t *v, size_t max); /* 1 to max bytes, or NULL */
const char *decl_read_pattern(struct decl_parser *p, const json_t *v);          /* NULL after a problem */
bool decl_read_bool(struct decl_parser *p, const json_t *v);
unsigned decl_read_number(struct decl_parser *p, const json_t *v); /* 1 to DECL_COUNT_MAX */
bool decl_is_path(const char *text); /* absolute, at most DECL_PATH_MAX bytes, no empty part, "." or ".."; may
                                        end with "/" */
bool decl_is_pattern(const char *text); /* each [ has its ], no slash within, no backslash */

/* ---- decl_member.c: an element of paths, of usb ---- */
void decl_read_path(struct decl_parser *p, const json_t *v, void *to);
void decl_read_usb(struct decl_parser *p, const json_t *v, void *to);
#endif
