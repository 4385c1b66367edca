/* SPDX-License-Identifier: Apache-2.0 */
/* spdy_internal - shared by the files of the SPDY codec. */
#ifndef AGENT_KUBE_SERVER_SPDY_INTERNAL_H
#define AGENT_KUBE_SERVER_SPDY_INTERNAL_H
#include "agent/kube/server/spdy.h"

#define SPDY_DICTIONARY_SIZE 1423
extern const unsigned char spdy_dictionary[SPDY_DICTIONARY_SIZE]; /* without a zero at its end */

/* Decompresses a block and finds its headers, which live in s->text. False: it is damaged or too long. */
bool spdy_headers_read(struct spdy *s, const char *block, size_t n, struct spdy_headers *ret);
/* Appends a block without headers, compressed. False: out of memory. */
bool spdy_headers_add_none(struct spdy *s, struct buf *to);
#endif
