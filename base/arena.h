/* SPDX-License-Identifier: Apache-2.0 */
/* arena - memory that is freed all at once, for decoded objects and plans. Not thread-safe, but may be passed
 * from one thread to another. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include "base/error.h"

#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *blocks; /* NULL when empty; { 0 } is a valid empty arena */
    size_t used;                /* bytes handed out, for limits and statistics */
};

/* zeroed, 16-byte aligned; NULL when out of memory */
void *arena_alloc(struct arena *a, size_t n) MUST_CHECK;
char *arena_strdup(struct arena *a, const char *s) MUST_CHECK; /* NULL for NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n) MUST_CHECK;
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_CHECK;
void arena_done(struct arena *a); /* frees everything; the arena is empty and usable again */
#endif
