/* SPDX-License-Identifier: Apache-2.0 */
/* utf8 - characters in untrusted text. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the well-formed character (RFC 3629) at `text`, of at most n bytes; 0 if there is none. */
size_t utf8_char(const char *text, size_t n);
bool utf8_is_valid(const char *text, size_t n);
/* The same as utf8_char(), with its code point; *ret is unchanged if there is none. */
size_t utf8_decode(const char *text, size_t n, uint32_t *ret);
/* The greatest length <= max at which text (readable up to text[max]) ends with a complete character. */
size_t utf8_cut(const char *text, size_t max);
/* Whether a terminal only draws it: no control character (C0, DEL, C1), and none that reorders the text
 * around it (bidirectional marks, embeddings, overrides and isolates) or ends a line (U+2028, U+2029). */
bool utf8_is_drawn(uint32_t c);
/* In place: replaces characters that are not drawn, and invalid UTF-8, with '?'. */
void text_printable(char *text);
#endif
