/* SPDX-License-Identifier: Apache-2.0 */
/* utf8 - characters of texts from outside, which may be anything. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H
#include <stddef.h>
#include <stdint.h>

/* How many bytes the well-formed character (RFC 3629) at `text` has, of at most n; 0: there is none. */
size_t utf8_char(const char *text, size_t n);
/* Likewise, with its code point; *ret stays as it was when there is none. */
size_t utf8_decode(const char *text, size_t n, uint32_t *ret);
/* The greatest length <= max at which text (readable up to text[max]) ends with a whole character. */
size_t utf8_cut(const char *text, size_t max);
/* In place: control characters and bytes that are not UTF-8 become '?'. */
void text_printable(char *text);
#endif
