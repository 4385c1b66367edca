/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char buf_empty[1];

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT(max);
}

void buf_init_secret(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_SECRET(max);
}

void buf_done(struct buf *b)
{
    const bool secret = b->secret;

    if (b->cap > 0 && secret)
        explicit_bzero(b->p, b->cap);
    if (b->cap > 0)
        free(b->p);
    buf_init(b, b->max);
    b->secret = secret;
}

void buf_reset(struct buf *b)
{
    if (b->cap == 0) {
        buf_done(b);
        return;
    }
    if (b->secret)
        explicit_bzero(b->p, b->n);
    b->n = 0;
    b->p[0] = '\0';
    b->failed = false;
}

void buf_wipe(struct buf *b)
{
    if (b->cap > 0)
        explicit_bzero(b->p, b->cap);
    buf_done(b);
}

char *buf_room(struct buf *b, size_t n)
{
    size_t need, cap;
    char *p;

    if (b->failed)
        return NULL;
    if (n > b->max || b->n > b->max - n || b->n + n == SIZE_MAX)
        goto fail;
    need = b->n + n + 1;
    if (need <= b->cap)
        return b->p + b->n;

    /* Double, but no more than the maximum allows. */
    cap = b->cap < 32 ? 64 : b->cap > SIZE_MAX / 2 ? need : b->cap * 2;
    if (cap < need)
        cap = need;
    if (b->max < SIZE_MAX && cap > b->max + 1)
        cap = b->max + 1;

    p = b->cap > 0 && !b->secret ? realloc(b->p, cap) : malloc(cap);
    if (p == NULL)
        goto fail;
    if (b->cap == 0 || b->secret) { /* the shared empty string or borrowed memory: start with a copy */
        memcpy(p, b->p, b->n);
        p[b->n] = '\0';
    }
    if (b->cap > 0 && b->secret) {
        explicit_bzero(b->p, b->cap);
        free(b->p);
    }
    b->p = p;
    b->cap = cap;
    return b->p + b->n;
fail:
    b->failed = true;
    return NULL;
}

void buf_add(struct buf *b, const void *data, size_t n)
{
    char *room = buf_room(b, n);

    if (room == NULL || n == 0)
        return;
    memcpy(room, data, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_addv(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    char *room;
    int n;

    if (b->failed)
        return;
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0)
        b->failed = true;
    else if ((room = buf_room(b, (size_t)n)) != NULL) {
        vsnprintf(room, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_addv(b, fmt, ap);
    va_end(ap);
}

void buf_remove_front(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    if (n >= b->n) {
        bool failed = b->failed;

        buf_reset(b);
        b->failed = failed;
        return;
    }
    if (b->cap == 0) { /* borrowed memory must not be modified */
        b->p += n;
        b->n -= n;
        return;
    }
    memmove(b->p, b->p + n, b->n - n + 1);
    b->n -= n;
    if (b->secret)
        explicit_bzero(b->p + b->n, n);
}

enum err_code buf_check(const struct buf *b, struct err *e)
{
    if (!b->failed)
        return ERR_OK;
    return err_set(e, ERR_EXHAUSTED, "out of memory or over the limit of %zu bytes", b->max);
}

char *buf_detach(struct buf *b)
{
    char *p = b->p;

    if (b->cap == 0) {
        p = malloc(b->n + 1);
        if (p == NULL)
            return NULL;
        memcpy(p, b->p, b->n);
        p[b->n] = '\0';
    }
    b->cap = 0; /* the memory is the caller's now */
    buf_done(b);
    return p;
}

void str_wipe(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

void str_wipe_p(char **text)
{
    str_wipe(*text);
}

char *str_printf(const char *fmt, ...)
{
    char *text;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : text;
}

bool str_keep(char **at, const char *text)
{
    const char *before = *at != NULL ? *at : "";
    char *copy;

    if (strcmp(before, text) == 0)
        return false;
    copy = text[0] != '\0' ? strdup(text) : NULL;
    free(*at);
    *at = copy;
    return true;
}

const char *str_pack(char **at, const char *text)
{
    const char *copy = *at;

    if (text == NULL)
        return NULL;
    *at = stpcpy(*at, text) + 1;
    return copy;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);

    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}
