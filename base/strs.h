/* SPDX-License-Identifier: Apache-2.0 */
/* strs - a growing list of strings, always NULL-terminated once something was added. { 0 } is empty. */
#ifndef BASE_STRS_H
#define BASE_STRS_H
#include <stdbool.h>
#include <stddef.h>

struct strs {
    char **v; /* owned, each malloc'ed; NULL while nothing was ever added */
    size_t n;
};

bool strs_add(struct strs *s, const char *text); /* copies; false when out of memory */
bool strs_take(struct strs *s, char *text); /* takes malloc'ed text, frees it on failure; false for NULL */
bool strs_add_once(struct strs *s, const char *text);
bool strs_copy(struct strs *to, const struct strs *from); /* appends; false when out of memory */
bool strs_has(const struct strs *s, const char *text);
void strs_sort(struct strs *s);                     /* by bytes */
void strs_unique(struct strs *s);                   /* sorts, and removes duplicates */
const char *const *strs_list(const struct strs *s); /* never NULL: an empty list if nothing was added */
void strs_done(struct strs *s);
#endif
