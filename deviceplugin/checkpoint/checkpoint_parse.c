/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a checkpoint. Plugins have the folder of this file mounted, so its content may be hostile. It
 * is read without a tree of JSON values, which would take forty times the memory of a text like
 * [[],[],[]...]. Strings and base64 are decoded in place, in a copy of the text. Only the file's own grammar
 * is read, so the depth of nesting is bounded.
 */
#include "deviceplugin/checkpoint/checkpoint_data.h"

#include "base/codec/base64.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDS_MAX (4 * DP_HELD_MAX) /* in the whole file, held and registered */

struct scan {
    char *begin, *at, *end;
    struct dp_ck_data *d;
    uint64_t sum;
    struct dp_ck_entry entry; /* the entry that is being read */
    struct err *e;
};

static enum err_code PRINTF_LIKE(2, 3) damaged(struct scan *s, const char *fmt, ...)
{
    char what[128];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    text_printable(what);
    if (s->at == s->end)
        return err_set(s->e, ERR_DATA_LOSS, "byte %zu: %s", (size_t)(s->end - s->begin), what);
    return err_set(s->e, ERR_DATA_LOSS, "byte %zu: %s", (size_t)(s->at - s->begin), what);
}

/* ---- tokens ---- */

static void skip_blanks(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

static bool accept(struct scan *s, char c)
{
    skip_blanks(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static enum err_code expect(struct scan *s, char c)
{
    return accept(s, c) ? ERR_OK : damaged(s, "'%c' is expected", c);
}

static bool accept_null(struct scan *s)
{
    if (!accept(s, 'n'))
        return false;
    if (s->end - s->at >= 3 && memcmp(s->at, "ull", 3) == 0) {
        s->at += 3;
        return true;
    }
    s->at--;
    return false;
}

static enum err_code hex4(struct scan *s, uint32_t *ret)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++, s->at++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *found = s->at < s->end && *s->at != '\0' ? strchr(digits, *s->at) : NULL;

        if (found == NULL)
            return damaged(s, "four hexadecimal digits are expected after \\u");
        v = v << 4 | (uint32_t)((found - digits) % 16);
    }
    *ret = v;
    return ERR_OK;
}

/* Go writes no invalid characters; a NUL would end a C string. */
static enum err_code code_point(struct scan *s, uint32_t *ret)
{
    uint32_t low = 0;

    if (hex4(s, ret) != ERR_OK)
        return s->e->code;
    if (*ret >= 0xd800 && *ret < 0xdc00 && s->end - s->at >= 2 && s->at[0] == '\\' && s->at[1] == 'u') {
        s->at += 2;
        if (hex4(s, &low) != ERR_OK)
            return s->e->code;
        if (low < 0xdc00 || low > 0xdfff)
            return damaged(s, "half of a surrogate pair (\\u%04x)", (unsigned)*ret);
        *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
    }
    if (*ret >= 0xd800 && *ret <= 0xdfff)
        return damaged(s, "half of a surrogate pair (\\u%04x)", (unsigned)*ret);
    return *ret != 0 ? ERR_OK : damaged(s, "a NUL in a string");
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xe0 | c >> 12);
        } else {
            *to++ = (char)(0xf0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 63));
        }
        *to++ = (char)(0x80 | (c >> 6 & 63));
    }
    *to++ = (char)(0x80 | (c & 63));
    return to;
}

/* After the backslash. */
static enum err_code escape(struct scan *s, char **to)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char c = s->at < s->end ? *s->at : '\0';
    const char *found = c != '\0' ? strchr(names, c) : NULL;
    uint32_t point;

    if (found == NULL && c != 'u')
        return damaged(s, "not an escape of JSON");
    s->at++;
    if (found != NULL) {
        *(*to)++ = meanings[found - names];
        return ERR_OK;
    }
    if (code_point(s, &point) != ERR_OK)
        return s->e->code;
    *to = put_utf8(*to, point);
    return ERR_OK;
}

/* Decodes in place: no character becomes longer, and the NUL replaces the quote. */
static enum err_code string(struct scan *s, char **ret)
{
    char *to;

    if (!accept(s, '"'))
        return damaged(s, "a string is expected");
    *ret = to = s->at;
    while (s->at < s->end && *s->at != '"') {
        size_t n = utf8_char(s->at, (size_t)(s->end - s->at));

        if (*s->at == '\\') {
            s->at++;
            if (escape(s, &to) != ERR_OK)
                return s->e->code;
            continue;
        }
        if (n == 0 || (unsigned char)*s->at < 0x20)
            return damaged(s, n == 0 ? "not UTF-8" : "a control character in a string");
        memmove(to, s->at, n);
        to += n;
        s->at += n;
    }
    if (s->at == s->end)
        return damaged(s, "'\"' is expected");
    s->at++;
    *to = '\0';
    return ERR_OK;
}

/* ---- lists and objects ---- */

typedef enum err_code (*item_fn)(struct scan *s);

static enum err_code each(struct scan *s, const char brackets[2], item_fn item)
{
    if (expect(s, brackets[0]) != ERR_OK)
        return s->e->code;
    if (accept(s, brackets[1]))
        return ERR_OK;
    do {
        if (item(s) != ERR_OK)
            return s->e->code;
    } while (accept(s, ','));
    return accept(s, brackets[1]) ? ERR_OK : damaged(s, "',' or '%c' is expected", brackets[1]);
}

static enum err_code key(struct scan *s, char **ret)
{
    enum err_code code = string(s, ret);

    return code == ERR_OK ? expect(s, ':') : code;
}

struct member {
    const char *name;
    item_fn value;
};

/* An object of exactly these members, in any order. */
static enum err_code members(struct scan *s, const struct member *m, size_t n)
{
    unsigned seen = 0;
    size_t i;
    char *name = s->at; /* set by key(); clang-analyzer does not see it */

    if (expect(s, '{') != ERR_OK)
        return s->e->code;
    do {
        if (key(s, &name) != ERR_OK)
            return s->e->code;
        for (i = 0; i < n && strcmp(m[i].name, name) != 0; i++)
            ;
        if (i == n)
            return damaged(s, "unknown key \"%.40s\"", name);
        if ((seen >> i & 1) != 0)
            return damaged(s, "the key \"%s\" appears twice", name);
        seen |= 1u << i;
        if (m[i].value(s) != ERR_OK)
            return s->e->code;
    } while (accept(s, ','));
    for (i = 0; i < n; i++)
        if ((seen >> i & 1) == 0)
            return damaged(s, "the key \"%s\" is missing", m[i].name);
    return expect(s, '}');
}

/* ---- the file ---- */

static enum err_code id(struct scan *s)
{
    char *text;

    if (string(s, &text) != ERR_OK)
        return s->e->code;
    if (s->d->n_ids >= IDS_MAX)
        return damaged(s, "more than %d device ids", IDS_MAX);
    return dp_ck_add_id(s->d, text) ? ERR_OK : err_nomem(s->e);
}

static enum err_code ids(struct scan *s, struct dp_ck_range *ret)
{
    *ret = (struct dp_ck_range){ .first = s->d->n_ids };
    if (accept_null(s)) {
        ret->nil = true;
        return ERR_OK;
    }
    if (each(s, "[]", id) != ERR_OK)
        return s->e->code;
    ret->n = s->d->n_ids - ret->first;
    return ERR_OK;
}

static enum err_code node(struct scan *s)
{
    struct dp_ck_node x;
    char *numa;

    if (key(s, &numa) != ERR_OK)
        return s->e->code;
    if (parse_i64(numa, INT64_MIN, INT64_MAX, &x.numa, "a NUMA node", ERR_IGNORED) != ERR_OK)
        return damaged(s, "\"%.40s\" is not a NUMA node", numa);
    if (s->d->n_nodes >= DP_HELD_MAX)
        return damaged(s, "more than %d lists of devices", DP_HELD_MAX);
    if (ids(s, &x.ids) != ERR_OK)
        return s->e->code;
    return dp_ck_add_node(s->d, &x) ? ERR_OK : err_nomem(s->e);
}

static int compare_nodes(const void *a, const void *b)
{
    int64_t x = ((const struct dp_ck_node *)a)->numa, y = ((const struct dp_ck_node *)b)->numa;

    return (x > y) - (x < y);
}

static enum err_code device_ids(struct scan *s)
{
    struct dp_ck_range *range = &s->entry.nodes;
    struct dp_ck_node *nodes;

    *range = (struct dp_ck_range){ .first = s->d->n_nodes };
    if (accept_null(s)) {
        range->nil = true;
        return ERR_OK;
    }
    if (each(s, "{}", node) != ERR_OK)
        return s->e->code;
    range->n = s->d->n_nodes - range->first;
    if (range->n < 2)
        return ERR_OK;
    nodes = s->d->nodes + range->first;
    qsort(nodes, range->n, sizeof(*nodes), compare_nodes);
    for (size_t i = 1; i < range->n; i++)
        if (nodes[i - 1].numa == nodes[i].numa)
            return damaged(s, "the NUMA node %lld appears twice", (long long)nodes[i].numa);
    return ERR_OK;
}

static enum err_code answer(struct scan *s)
{
    char *text;

    s->entry.answer = NULL;
    s->entry.n_answer = 0;
    if (accept_null(s))
        return ERR_OK;
    if (string(s, &text) != ERR_OK)
        return s->e->code;
    s->entry.answer = (const uint8_t *)text;
    if (strlen(text) % 4 != 0 ||
        !base64_decode(text, strlen(text), (unsigned char *)text, &s->entry.n_answer))
        return damaged(s, "AllocResp is not base64");
    return ERR_OK;
}

static enum err_code text_of(struct scan *s, const char **ret)
{
    char *text;

    if (string(s, &text) != ERR_OK)
        return s->e->code;
    *ret = text;
    return ERR_OK;
}

static enum err_code pod_uid(struct scan *s)
{
    return text_of(s, &s->entry.pod_uid);
}

static enum err_code container(struct scan *s)
{
    return text_of(s, &s->entry.container);
}

static enum err_code resource(struct scan *s)
{
    return text_of(s, &s->entry.resource);
}

static enum err_code entry(struct scan *s)
{
    static const struct member of_entry[] = {
        { "PodUID", pod_uid },       { "ContainerName", container }, { "ResourceName", resource },
        { "DeviceIDs", device_ids }, { "AllocResp", answer },
    };

    if (members(s, of_entry, ARRAY_LEN(of_entry)) != ERR_OK)
        return s->e->code;
    if (s->d->n_entries >= DP_HOLDINGS_MAX)
        return damaged(s, "more than %d entries", DP_HOLDINGS_MAX);
    return dp_ck_add_entry(s->d, &s->entry) ? ERR_OK : err_nomem(s->e);
}

static enum err_code entries(struct scan *s)
{
    s->d->nil_entries = accept_null(s);
    return s->d->nil_entries ? ERR_OK : each(s, "[]", entry);
}

static enum err_code registered(struct scan *s)
{
    struct dp_ck_resource x;
    char *name;

    if (key(s, &name) != ERR_OK || ids(s, &x.ids) != ERR_OK)
        return s->e->code;
    if (s->d->n_resources >= DP_HOLDINGS_MAX)
        return damaged(s, "more than %d resources", DP_HOLDINGS_MAX);
    x.name = name;
    return dp_ck_add_resource(s->d, &x) ? ERR_OK : err_nomem(s->e);
}

static int compare_resources(const void *a, const void *b)
{
    return strcmp(((const struct dp_ck_resource *)a)->name, ((const struct dp_ck_resource *)b)->name);
}

static enum err_code resources(struct scan *s)
{
    struct dp_ck_data *d = s->d;

    d->nil_resources = accept_null(s);
    if (d->nil_resources)
        return ERR_OK;
    if (each(s, "{}", registered) != ERR_OK)
        return s->e->code;
    if (d->n_resources < 2)
        return ERR_OK;
    qsort(d->resources, d->n_resources, sizeof(*d->resources), compare_resources);
    for (size_t i = 1; i < d->n_resources; i++)
        if (strcmp(d->resources[i - 1].name, d->resources[i].name) == 0)
            return damaged(s, "the resource \"%.80s\" appears twice", d->resources[i].name);
    return ERR_OK;
}

static enum err_code data(struct scan *s)
{
    static const struct member of_data[] = { { "PodDeviceEntries", entries },
                                             { "RegisteredDevices", resources } };

    return members(s, of_data, ARRAY_LEN(of_data));
}

static enum err_code checksum(struct scan *s)
{
    skip_blanks(s);
    s->sum = 0;
    if (s->at == s->end || *s->at < '0' || *s->at > '9')
        return damaged(s, "a number is expected");
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (__builtin_mul_overflow(s->sum, 10, &s->sum) ||
            __builtin_add_overflow(s->sum, (uint64_t)(*s->at - '0'), &s->sum))
            return damaged(s, "the number is too large");
    return ERR_OK;
}

enum err_code dp_ck_parse(const char *text, size_t n, struct dp_ck_data *ret, uint64_t *ret_sum,
                          struct err *e)
{
    static const struct member of_file[] = { { "Data", data }, { "Checksum", checksum } };
    struct scan s = { .d = ret, .e = e };

    *ret = (struct dp_ck_data){ 0 };
    if (n == 0)
        return err_set(e, ERR_DATA_LOSS, "it is empty");
    if (n > DP_CHECKPOINT_MAX)
        return err_set(e, ERR_DATA_LOSS, "%zu bytes are more than the %d allowed", n, DP_CHECKPOINT_MAX);
    ret->text = malloc(n);
    if (ret->text == NULL)
        return err_nomem(e);
    memcpy(ret->text, text, n);
    s.begin = s.at = ret->text;
    s.end = ret->text + n;
    if (members(&s, of_file, ARRAY_LEN(of_file)) != ERR_OK)
        return e->code;
    skip_blanks(&s);
    if (s.at != s.end)
        return damaged(&s, "text after the end");
    *ret_sum = s.sum;
    return ERR_OK;
}
