/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kept/kept_file.h"

#include "base/siphash.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "coracle-kept 1 "
#define SUM_SIZE 17 /* 16 digits, \n */
#define HASH_DIGITS 32
#define KIND_MAX 24

/* Fixed keys: these hashes are not for protection, only for distribution. */
static const unsigned char first_key[SIPHASH_KEY_SIZE] = "coracle kept  1",
                           second_key[SIPHASH_KEY_SIZE] = "coracle kept  2";

bool kept_name_is_good(const char *name)
{
    size_t n = 0, kind = strcspn(name, "/");

    if (kind == 0 || kind > KIND_MAX)
        return false;
    for (size_t i = 0; i < kind; i++)
        if (!isascii(name[i]) || !isalpha((unsigned char)name[i]))
            return false;
    while (n < KEPT_NAME_SIZE && name[n] > ' ' && name[n] < 0x7f)
        n++;
    return n < KEPT_NAME_SIZE && name[n] == '\0';
}

void kept_file_name(const char *name, char ret[KEPT_FILE_SIZE])
{
    size_t kind = strcspn(name, "/"), n = strlen(name);

    if (kind > KIND_MAX)
        kind = KIND_MAX;
    snprintf(ret, KEPT_FILE_SIZE, "%.*s-%016" PRIx64 "%016" PRIx64, (int)kind, name,
             siphash(first_key, name, n), siphash(second_key, name, n));
    for (char *c = ret; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
}

bool kept_file_is_name(const char *file)
{
    size_t kind = strspn(file, "abcdefghijklmnopqrstuvwxyz");

    return kind > 0 && kind <= KIND_MAX && file[kind] == '-' && strlen(file) == kind + 1 + HASH_DIGITS &&
           strspn(file + kind + 1, "0123456789abcdef") == HASH_DIGITS;
}

void kept_file_head(const char *name, bool sealed, char ret[KEPT_HEAD_SIZE])
{
    snprintf(ret, KEPT_HEAD_SIZE, MAGIC "%s\n%s\n", sealed ? "sealed" : "plain", name);
}

static void kept_file_sum(const char *head, size_t head_n, const char *text, size_t n, char ret[SUM_SIZE + 1])
{
    /* A hash of the hashes of head and text, so that nothing is copied. */
    const uint64_t parts[] = { siphash(first_key, head, head_n), siphash(second_key, text, n) };

    snprintf(ret, SUM_SIZE + 1, "%016" PRIx64 "\n", siphash(first_key, parts, sizeof(parts)));
}

void kept_file_add_plain(struct buf *b, const char *name, const char *text, size_t n)
{
    char head[KEPT_HEAD_SIZE], sum[SUM_SIZE + 1];

    kept_file_head(name, false, head);
    kept_file_sum(head, strlen(head), text, n, sum);
    buf_adds(b, head);
    buf_adds(b, sum);
    buf_add(b, text, n);
}

/* The line at *at, without its end; advances *at. False: there is none. */
static bool line_take(const char *data, size_t n, size_t *at, struct str *ret)
{
    const char *end = memchr(data + *at, '\n', n - *at);

    if (end == NULL)
        return false;
    *ret = (struct str){ data + *at, (size_t)(end - data) - *at };
    *at += ret->n + 1;
    return true;
}

static bool str_is(struct str s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

enum err_code kept_file_read(const char *data, size_t n, struct kept_content *ret, struct err *e)
{
    struct kept_content c = { 0 };
    char sum[SUM_SIZE + 1];
    struct str magic, name;
    size_t at = 0;

    if (n > KEPT_FILE_MAX || !line_take(data, n, &at, &magic) || !line_take(data, n, &at, &name) ||
        (!str_is(magic, MAGIC "sealed") && !str_is(magic, MAGIC "plain")))
        return err_set(e, ERR_DATA_LOSS, "it does not have the header of a kept object");
    if (name.n >= sizeof(c.name) || memchr(name.p, '\0', name.n) != NULL)
        return err_set(e, ERR_DATA_LOSS, "its name cannot be used");
    memcpy(c.name, name.p, name.n);
    if (!kept_name_is_good(c.name))
        return err_set(e, ERR_DATA_LOSS, "its name cannot be used");
    c.sealed = str_is(magic, MAGIC "sealed");
    c.head = (struct str){ data, at };
    c.body = (struct str){ data + at, n - at };
    if (!c.sealed) {
        if (c.body.n < SUM_SIZE)
            return err_set(e, ERR_DATA_LOSS, "it is truncated");
        c.body = (struct str){ c.body.p + SUM_SIZE, c.body.n - SUM_SIZE };
        kept_file_sum(c.head.p, c.head.n, c.body.p, c.body.n, sum);
        if (memcmp(sum, data + at, SUM_SIZE) != 0)
            return err_set(e, ERR_DATA_LOSS, "its checksum does not match its content");
    }
    *ret = c;
    return ERR_OK;
}
