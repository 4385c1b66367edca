/* SPDX-License-Identifier: Apache-2.0 */
/* go_text - JSON values as Go prints them with %v: the apiserver's messages show them so.  Private to the
 * room. */
#ifndef AGENT_API_PATCH_GO_TEXT_H
#define AGENT_API_PATCH_GO_TEXT_H
#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define GO_TEXT_MAX (1024 * 1024) /* bytes of one text */

/* "map[image:busybox:3 name:a]", "[a b]", "<nil>": members in the order of their names. */
void go_text_add(struct buf *b, const json_t *v);
/* The same, malloc'ed; NULL when out of memory or too long. */
char *go_text(const json_t *v);
/* The type a JSON value has when decoded: "[]interface {}", "string". */
const char *go_type(const json_t *v);

/* go_base64.c: whether Go's decoder takes the text; otherwise *ret_at is the byte that its error names. */
bool go_base64(const char *text, size_t n, size_t *ret_at);
#endif
