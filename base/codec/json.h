/* SPDX-License-Identifier: Apache-2.0 */
/* json - small helpers for jansson: typed access to members, and text output. Borrowed results live as long
 * as the object. */
#ifndef BASE_CODEC_JSON_H
#define BASE_CODEC_JSON_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

const char *json_str(const json_t *obj, const char *key); /* NULL if absent or not a string */
json_t *json_at(const json_t *object, const char *path);  /* "status.phase"; NULL if absent */
json_int_t json_int(const json_t *obj, const char *key, json_int_t otherwise);
bool json_flag(const json_t *obj, const char *key);  /* false if absent */
bool json_has(const json_t *list, const char *text); /* whether the list has this string; false for NULL */
/* The first element of a list whose member "name" is this string; NULL if absent, or if name is NULL. */
json_t *json_named(const json_t *list, const char *name);
/* Accepts any bytes: invalid UTF-8 becomes U+FFFD because jansson rejects it. NULL when out of memory. */
json_t *json_string_of(const char *value);
/* Sets obj[key]; a NULL or empty value is left out. False only when out of memory. */
bool json_put_str(json_t *obj, const char *key, const char *value);
const char **json_sorted_keys(const json_t *object); /* NULL-terminated; free() it, the keys are borrowed */
/* Parses one value of at most `max` bytes; rejects duplicate keys and trailing text. `what` is for
 * messages. */
enum err_code json_parse(const char *text, size_t n, size_t max, json_t **ret, const char *what,
                         struct err *e) MUST_CHECK;
struct buf;
/* Appends the text of `v`; pretty: indented by two, its lines but the first by `columns` more. NULL, or no
 * memory: b->failed. */
void json_add_text(struct buf *b, const json_t *v, bool pretty, int columns);
/* From now on values are overwritten before their memory is freed, since any of them may be a Secret's. Call
 * it before the first value is created. */
void json_wipe_freed(void);
char *json_text(const json_t *v); /* compact, malloc'ed; NULL when out of memory */
#endif
