/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_internal - what the files of yaml share. */
#ifndef AGENT_API_YAML_INTERNAL_H
#define AGENT_API_YAML_INTERNAL_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Documents of YAML; results as of yaml_to_json(), also after a failure, then perhaps NULL.  *ret_quoted: the
 * first character of a scalar with an escape that libyaml does not know; SIZE_MAX: none.
 */
enum err_code yaml_read(const char *text, size_t size, json_t **ret, int **ret_numbers, size_t *ret_quoted,
                        struct err *e) MUST_CHECK;
/* Documents of JSON from `at` on; results likewise. */
enum err_code yaml_read_json(const char *text, size_t size, size_t at, json_t **ret, int **ret_numbers,
                             struct err *e) MUST_CHECK;
/* Behind white space and "---" lines between JSON documents. */
size_t yaml_skip_separators(const char *text, size_t size, size_t at);

extern const char yaml_no_memory[]; /* *problem when it is none of the text */

/* The value of an unquoted scalar that is no string; NULL: it is a string, or *problem says why it is
 * refused. */
json_t *yaml_plain_value(const char *s, const char **problem);

/*
 * Takes the backslash from each \' of the double-quoted scalar that begins at character `index`, in place;
 * false: there is none.
 */
bool yaml_mend_quotes(char *text, size_t *size, size_t index);

/* The value of any scalar (`tag` may be NULL); NULL with *problem set when it is refused. */
json_t *yaml_scalar_value(const char *s, size_t n, bool plain, const char *tag, const char **problem);
#endif
