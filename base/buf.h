/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf - a growing byte string with a hard maximum; str - a borrowed view.
 *
 * Invariants (after git's strbuf): buf.p is never NULL and always NUL-terminated at p[n], so it can
 * be passed as a C string; buf_detach() takes the memory.  A buffer that would grow past `max`, or
 * an allocation that fails, sets `failed`, leaves the content as it was and makes every later append
 * a no-op: append freely, check once with buf_check().
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct str {
    const char *p; /* borrowed, not NUL-terminated */
    size_t n;
};

struct buf {
    char *p;
    size_t n;
    /* allocated bytes; 0: p is not owned (the shared empty string, or borrowed memory), so detach copies */
    size_t cap;
    size_t max; /* content may not exceed this many bytes */
    bool failed;
    bool secret; /* memory is overwritten before it is freed, also when the buffer grows or empties */
};

extern char buf_empty[1];
#define BUF_INIT(max_bytes)                                                                                  \
    {                                                                                                        \
        .p = buf_empty, .max = (max_bytes)                                                                   \
    }
/* A buffer whose content may be a secret. */
#define BUF_SECRET(max_bytes)                                                                                \
    {                                                                                                        \
        .p = buf_empty, .max = (max_bytes), .secret = true                                                   \
    }
#define buf_auto __attribute__((cleanup(buf_done))) struct buf

void buf_init(struct buf *b, size_t max);
void buf_init_secret(struct buf *b, size_t max);
void buf_done(struct buf *b);  /* frees; the buffer is empty and usable again */
void buf_reset(struct buf *b); /* keeps the memory, clears content and `failed` */
/* Overwrites with zeros, then buf_done().  Growing may have left copies behind: see BUF_SECRET(). */
void buf_wipe(struct buf *b);

void buf_add(struct buf *b, const void *data, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_addv(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
void buf_remove_front(struct buf *b, size_t n);

/* Ensures room for n more bytes at b->p + b->n; NULL on failure. The caller advances b->n and terminates the
 * string. */
char *buf_room(struct buf *b, size_t n);

enum err_code buf_check(const struct buf *b, struct err *e) MUST_CHECK;

/* The content as a malloc'ed string (NULL only when out of memory); the buffer is empty again. */
char *buf_detach(struct buf *b) MUST_CHECK;

/* Overwrites a malloc'ed string with zeros and frees it; NULL is fine. */
void str_wipe(char *text);
#define secret_auto __attribute__((cleanup(str_wipe_p))) char *
void str_wipe_p(char **text);

/* printf() into malloc'ed memory; NULL when out of memory. */
char *str_printf(const char *fmt, ...) PRINTF_LIKE(1, 2) MUST_CHECK;
/* Replaces *at, owned and at first NULL, by a copy of the text; by NULL for "" and when out of memory. True
 * if the text differs from the one before. */
bool str_keep(char **at, const char *text);
/* Copies text with its NUL to *at and advances *at. The caller provides enough room. NULL stays NULL. */
const char *str_pack(char **at, const char *text);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
static inline bool str_eq(const char *a, const char *b) /* NULL equals only NULL */
{
    return a == b || (a != NULL && b != NULL && __builtin_strcmp(a, b) == 0);
}
#endif
