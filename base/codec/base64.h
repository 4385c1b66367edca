/* SPDX-License-Identifier: Apache-2.0 */
/* base64 - RFC 4648's alphabet: encoding with padding, decoding with or without. */
#ifndef BASE_CODEC_BASE64_H
#define BASE_CODEC_BASE64_H
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

extern const char base64_digits[65];
void base64_add(struct buf *out, const void *data, size_t n);

#define BASE64_DECODED_MAX(n) ((n) / 4 * 3 + 3)
/* False: a byte outside the alphabet, or misplaced padding. `out` has BASE64_DECODED_MAX(n) bytes. */
bool base64_decode(const char *text, size_t n, unsigned char *out, size_t *ret_n);

#endif
