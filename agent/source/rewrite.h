/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite - texts of manifest files that are written for clients: an object as YAML, and a file of several
 * documents in which one is changed while the others stay byte for byte. Pure; any thread.
 */
#ifndef AGENT_SOURCE_REWRITE_H
#define AGENT_SOURCE_REWRITE_H
#include "agent/api/manifest/decode.h"
#include "base/buf.h"

struct src_key {
    enum api_kind kind;
    const char *namespace_, *name; /* namespace_ NULL: the kind has none */
};

bool src_key_is(const struct src_key *key, const struct api_object *object);

/* YAML as kubectl prints it; metadata.managedFields is written in one line, because it would otherwise fill
 * most of the file. Malloc'ed, NULL: out of memory. */
char *src_object_text(const json_t *object);

/* Appends the file `text` in which `replacement` replaces the document that contains only this object; NULL:
 * the document is removed. ERR_PRECONDITION: there is no such document (it is an item of a List, or the file
 * is JSON). */
enum err_code src_rewrite(const char *text, size_t n, const struct src_key *key, const char *replacement,
                          struct buf *ret, struct err *e) MUST_CHECK;
#endif
