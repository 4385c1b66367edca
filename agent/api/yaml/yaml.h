/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml - converts a YAML stream to JSON values, one json_t per document; and JSON to YAML for people.
 *
 * Scalars are typed as by Kubernetes' YAML reader (YAML 1.1 core: yes/no/on/off are booleans but y/n strings,
 * 0644 and 0o644 octal, 0x, .inf rejected, ~ null, quoted = string, \' in double quotes is a quote). Merge
 * keys (<<) are supported; duplicate keys, non-string keys, endlessly expanding anchors, and depth beyond the
 * limit are problems with line and column. Text that begins with '{' and a quote is read as JSON (duplicate
 * members rejected), and as YAML in flow style only if it is not JSON; several JSON documents may follow one
 * another.
 */
#ifndef AGENT_API_YAML_YAML_H
#define AGENT_API_YAML_YAML_H
#include "agent/api/problems.h"
#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

#define YAML_DEPTH_MAX 64
#define YAML_NODES_MAX 500000 /* per file, after expansion of aliases */
/* Bytes of texts and keys per file, after expansion of aliases: three times API_FILE_MAX. */
#define YAML_BYTES_MAX (32 * 1024 * 1024)
#define YAML_DOCS_MAX 1000

/* *ret is a new array with one value per document (empty documents are left out but counted: *ret_numbers,
 * malloc'ed, has each one's number from 1). On ERR_INVALID the text says "document 2: line 3 column 7: ...",
 * and *ret has the documents before the bad one (the caller releases it with json_decref()). `places`: NULL,
 * or where the table of places is put, also after a failure; the caller frees it. */
enum err_code yaml_to_json(const char *text, size_t size, json_t **ret, int **ret_numbers,
                           struct api_places *places, struct err *e) MUST_CHECK;

/* Adds an ERR_INVALID of yaml_to_json() at the place that its text names. */
void yaml_add_problem(struct api_problems *problems, const char *file, const struct err *e);

/* The first document as sigs.k8s.io/yaml reads it without strictness: for files that another program's users
 * wrote for that reader (kubeconfig, answers of exec credential plugins). y and n are booleans, too; of a key
 * that is given twice the last counts; keys that are numbers or booleans become texts ("false"). What follows
 * the first document is ignored. JSON is read as YAML, too. *ret stays NULL if there is no document, or only
 * null. The bounds are those of yaml_to_json(). Texts of errors have keys, but no values. */
enum err_code yaml_first_to_json(const char *text, size_t size, json_t **ret, struct err *e) MUST_CHECK;

/* The value of an unquoted scalar that is not a string; NULL if it is a string, or *problem says why it is
 * rejected. */
json_t *yaml_plain_value(const char *s, const char **problem);

/* kubectl-like YAML text of a value, malloc'ed. */
char *yaml_from_json(const json_t *value);
#endif
