/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_quote - a string as Go's strconv.Quote writes it, which is what the files of metadata.labels and
 * metadata.annotations hold under kubelet.  Printable is what Unicode calls a letter, mark, number,
 * punctuation or symbol, and the plain space; all else is escaped.  Code points that no version of Unicode
 * has assigned yet are written as they are (Go escapes them, and which those are depends on the Go that built
 * kubelet).
 */
#ifndef AGENT_POD_ENV_GO_QUOTE_H
#define AGENT_POD_ENV_GO_QUOTE_H
#include "base/buf.h"

void go_quote(struct buf *b, const char *text); /* appends; invalid UTF-8 becomes \x escapes */
#endif
