/* SPDX-License-Identifier: Apache-2.0 */
/* percent - RFC 3986's percent-encoding, for a segment of a path or a value of a query. */
#ifndef BASE_CODEC_PERCENT_H
#define BASE_CODEC_PERCENT_H
#include "base/buf.h"

/* Appends `text`; every byte but the unreserved ones (letters, digits, "-._~") is encoded. */
void percent_add(struct buf *b, const char *text);

#endif
