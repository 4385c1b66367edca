/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_internal - shared by the files of yaml. */
#ifndef AGENT_API_YAML_INTERNAL_H
#define AGENT_API_YAML_INTERNAL_H
#include "agent/api/places.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Reads YAML documents; results as for yaml_to_json(), also after a failure, but perhaps NULL; `places` is
 * emptied first. *ret_quoted: the first character of a scalar with an escape unknown to libyaml; SIZE_MAX:
 * none. */
enum err_code yaml_read(const char *text, size_t size, json_t **ret, int **ret_numbers,
                        struct api_places *places, size_t *ret_quoted, struct err *e) MUST_CHECK;
/* The same for yaml_first_to_json(): *ret has at most one document. */
enum err_code yaml_read_first(const char *text, size_t size, json_t **ret, size_t *ret_quoted,
                              struct err *e) MUST_CHECK;
/* Reads JSON documents from `at` on; results likewise. */
enum err_code yaml_read_json(const char *text, size_t size, size_t at, json_t **ret, int **ret_numbers,
                             struct api_places *places, struct err *e) MUST_CHECK;
/* Adds the places of the valid JSON document of `size` bytes at `text` + `at`. False: out of memory. */
bool yaml_json_places(const char *text, size_t at, size_t size, int document, size_t line,
                      struct api_places *places);
/* Skips white space and "---" lines between JSON documents. */
size_t yaml_skip_separators(const char *text, size_t size, size_t at);

extern const char yaml_no_memory[]; /* value of *problem that is not caused by the text */

/* Removes the backslash from each \' of the double-quoted scalar that begins at character `index`, in place;
 * false if there is none. */
bool yaml_mend_quotes(char *text, size_t *size, size_t index);

/* The value of any scalar (`tag` may be NULL); NULL with *problem set if it is rejected. */
json_t *yaml_scalar_value(const char *s, size_t n, bool plain, const char *tag, const char **problem);
/* A plain y, Y, n or N as Kubernetes' reader takes it; NULL: it is none of them. */
json_t *yaml_scalar_letter(const char *s);
#endif
