/* SPDX-License-Identifier: Apache-2.0 */
/* base64 - encoding with RFC 4648's alphabet and padding. */
#ifndef BASE_CODEC_BASE64_H
#define BASE_CODEC_BASE64_H
#include "base/buf.h"

#include <stddef.h>

extern const char base64_digits[65];
void base64_add(struct buf *out, const void *data, size_t n);

#endif
