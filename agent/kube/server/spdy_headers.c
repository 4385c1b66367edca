/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of headers: one zlib stream in each direction for a whole session, begun with the dictionary. */
#include "agent/kube/server/spdy_internal.h"

#include <string.h>

static bool headers_inflate(struct spdy *s, const char *block, size_t n)
{
    z_stream *z = &s->inflate;
    int r = Z_OK;

    buf_reset(&s->text);
    z->next_in = (unsigned char *)(uintptr_t)block;
    z->avail_in = (uInt)n;
    while (r == Z_OK || r == Z_NEED_DICT) {
        char *room = buf_room(&s->text, 1024);

        if (room == NULL)
            return false;
        z->next_out = (unsigned char *)room;
        z->avail_out = 1024;
        r = r == Z_NEED_DICT ? inflateSetDictionary(z, spdy_dictionary, SPDY_DICTIONARY_SIZE)
                             : inflate(z, Z_SYNC_FLUSH);
        s->text.n += 1024 - z->avail_out;
        s->text.p[s->text.n] = '\0';
        if (r == Z_OK && z->avail_in == 0 && z->avail_out > 0)
            return true;
    }
    return r == Z_BUF_ERROR && z->avail_in == 0; /* everything came out with the round before */
}

/* The text after its length at *at. NULL: cut off. */
static char *headers_take_text(struct buf *b, size_t *at, size_t *ret_n)
{
    const unsigned char *p = (const unsigned char *)b->p + *at;
    size_t n;

    if (b->n - *at < 4)
        return NULL;
    n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    if (n > b->n - *at - 4)
        return NULL;
    *ret_n = n;
    *at += 4 + n;
    return b->p + *at - n;
}

bool spdy_headers_read(struct spdy *s, const char *block, size_t n, struct spdy_headers *ret)
{
    size_t at = 4, count;

    ret->n = 0;
    if (!headers_inflate(s, block, n) || s->text.n < 4)
        return false;
    count = (size_t)(unsigned char)s->text.p[2] << 8 | (unsigned char)s->text.p[3];
    if (s->text.p[0] != 0 || s->text.p[1] != 0 || count > SPDY_HEADERS_N)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t name_n, value_n;
        char *name = headers_take_text(&s->text, &at, &name_n);
        char *value = name != NULL ? headers_take_text(&s->text, &at, &value_n) : NULL;

        if (value == NULL || name_n == 0 || memchr(name, '\0', name_n) != NULL)
            return false;
        /* Both end with a zero byte: the first one of the length that follows, or the buffer's. */
        ret->v[i] = (struct spdy_header){ name, value };
        for (char *c = name; *c != '\0'; c++)
            if (*c >= 'A' && *c <= 'Z')
                *c = (char)(*c | 0x20);
        ret->n = i + 1;
    }
    return at == s->text.n;
}

bool spdy_headers_add_none(struct spdy *s, struct buf *to)
{
    unsigned char none[4] = { 0 };
    z_stream *z = &s->deflate;
    int r = Z_OK;

    z->next_in = none;
    z->avail_in = sizeof(none);
    do {
        char *room = buf_room(to, 256);

        if (room == NULL)
            return false;
        z->next_out = (unsigned char *)room;
        z->avail_out = 256;
        r = deflate(z, Z_SYNC_FLUSH);
        to->n += 256 - z->avail_out;
    } while (r == Z_OK && z->avail_out == 0);
    to->p[to->n] = '\0';
    return r == Z_OK || r == Z_BUF_ERROR;
}

const char *spdy_header(const struct spdy_headers *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->v[i].name, name) == 0)
            return h->v[i].value;
    return "";
}
