/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Block sizes double from 1 KiB (a ConfigMap reference) to 32 KiB (a big pod), so that 110 small pods cost
 * little and a large object takes few calls. A large request that does not fit gets a block of its own size,
 * behind the current block, whose rest stays usable. */
enum { ALIGN = 16, FIRST_BLOCK = 1024, LAST_BLOCK = 32 * 1024, LARGE = 512 };

struct arena_block {
    struct arena_block *next;
    size_t size; /* bytes in data */
    size_t used;
    _Alignas(ALIGN) unsigned char data[];
};

static struct arena_block *new_block(size_t size)
{
    struct arena_block *b = calloc(1, sizeof(*b) + size);

    if (b != NULL)
        b->size = size;
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    struct arena_block *b = a->blocks;
    size_t size, rounded;
    void *p;

    if (n > SIZE_MAX / 2)
        return NULL;
    rounded = n == 0 ? ALIGN : (n + ALIGN - 1) / ALIGN * ALIGN;

    if (b == NULL || b->size - b->used < rounded) {
        size = b == NULL ? FIRST_BLOCK : b->size >= LAST_BLOCK / 2 ? LAST_BLOCK : b->size * 2;
        size -= sizeof(*b);
        if (rounded >= LARGE) {
            struct arena_block *own = new_block(rounded);

            if (own == NULL)
                return NULL;
            own->used = rounded;
            if (b == NULL) {
                a->blocks = own;
            } else {
                own->next = b->next;
                b->next = own;
            }
            a->used += n;
            return own->data;
        }
        b = new_block(size);
        if (b == NULL)
            return NULL;
        b->next = a->blocks;
        a->blocks = b;
    }
    p = b->data + b->used;
    b->used += rounded;
    a->used += n;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len;
    char *p;

    if (s == NULL)
        return NULL;
    len = strnlen(s, n);
    p = arena_alloc(a, len + 1);
    if (p != NULL)
        memcpy(p, s, len);
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s == NULL ? NULL : arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    char *p = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0)
        p = arena_alloc(a, (size_t)n + 1);
    if (p != NULL) {
        va_start(ap, fmt);
        vsnprintf(p, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    return p;
}

void arena_done(struct arena *a)
{
    struct arena_block *b = a->blocks, *next;

    for (; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    *a = (struct arena){ 0 };
}
