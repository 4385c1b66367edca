/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml - one YAML stream to JSON values, one json_t a document; and JSON to YAML for people.
 *
 * Scalars are typed as Kubernetes' YAML reader does (YAML 1.1 core: yes/no/on/off booleans but y/n strings,
 * 0644 and 0o644 octal, 0x, .inf refused, ~ null, quoted = string, \' in double quotes a quote); merge keys
 * (<<) are followed; duplicate keys, non-string keys, anchors that expand without end, and depth beyond the
 * limit are problems with line and column. A text that begins with '{' and a quote is read as JSON
 * (duplicate members refused), and as YAML in flow style only if it is no JSON; several JSON documents may
 * follow one another.
 */
#ifndef AGENT_API_YAML_H
#define AGENT_API_YAML_H
#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

#define YAML_DEPTH_MAX 64
#define YAML_NODES_MAX 500000 /* after expansion of aliases, a file */
#define YAML_BYTES_MAX                                                                                       \
    (32 * 1024 * 1024) /* of texts and keys after expansion of aliases, a file: three times API_FILE_MAX */
#define YAML_DOCS_MAX 1000

/*
 * *ret is a new array with one value a document (empty documents are left out of the content but counted:
 * *ret_numbers, malloc'ed, gives each one's number from 1).  On ERR_INVALID the text says "document 2: line 3
 * column 7: ...", and *ret still holds the documents before the bad one (caller json_decref()s it).
 */
enum err_code yaml_to_json(const char *text, size_t size, json_t **ret, int **ret_numbers,
                           struct err *e) MUST_CHECK;

/* kubectl-like YAML text of a value, malloc'ed. */
char *yaml_from_json(const json_t *value);
#endif
