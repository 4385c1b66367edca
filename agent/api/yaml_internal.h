/* yaml_internal - what yaml.c, yaml_scalar.c and yaml_write.c share. */
#ifndef AGENT_API_YAML_INTERNAL_H
#define AGENT_API_YAML_INTERNAL_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

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
