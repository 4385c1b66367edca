/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_quote - a string in the format of Go's strconv.Quote, which kubelet uses in the files of metadata.labels
 * and metadata.annotations, and in the texts of probes. Printable characters are Unicode letters, marks,
 * numbers, punctuation, symbols, and the plain space; all others are escaped. Unassigned code points are not
 * escaped (Go escapes them; which they are depends on the Go version that built kubelet).
 */
#ifndef BASE_CODEC_GO_QUOTE_H
#define BASE_CODEC_GO_QUOTE_H
#include "base/buf.h"

void go_quote(struct buf *b, const char *text, size_t size); /* appends; invalid UTF-8 becomes \x escapes */
#endif
