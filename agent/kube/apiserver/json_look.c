/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/apiserver/json_look.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define PATH_MAX_BYTES 4096

struct look {
    const char *at, *end;
    char *why;
    size_t size;
    unsigned depth;
    struct buf path;
    json_t *twice;
};

static bool end_of_input(struct look *l)
{
    snprintf(l->why, l->size, "unexpected end of JSON input");
    return false;
}

/* As Go's quoteChar. */
static bool bad(struct look *l, const char *where)
{
    unsigned char c;
    char shown[16];

    if (l->at == l->end)
        return end_of_input(l);
    c = (unsigned char)*l->at;
    if (c == '\'')
        snprintf(shown, sizeof(shown), "'\\''");
    else if (c == '"')
        snprintf(shown, sizeof(shown), "'\"'");
    else if (c == '\\')
        snprintf(shown, sizeof(shown), "'\\\\'");
    else if (c == '\n')
        snprintf(shown, sizeof(shown), "'\\n'");
    else if (c == '\t')
        snprintf(shown, sizeof(shown), "'\\t'");
    else if (c == '\r')
        snprintf(shown, sizeof(shown), "'\\r'");
    else if (c < 0x20 || c == 0x7f)
        snprintf(shown, sizeof(shown), "'\\x%02x'", c);
    else if (c >= 0x80) /* Go shows the byte as a code point */
        snprintf(shown, sizeof(shown), "'%c%c'", 0xc0 | (c >> 6), 0x80 | (c & 0x3f));
    else
        snprintf(shown, sizeof(shown), "'%c'", c);
    snprintf(l->why, l->size, "invalid character %s %s", shown, where);
    return false;
}

static void blanks(struct look *l)
{
    while (l->at < l->end && strchr(" \t\r\n", *l->at) != NULL && *l->at != '\0')
        l->at++;
}

static bool look_value(struct look *l);

/* Behind the first quote; *ret: where the text began. */
static bool look_string(struct look *l, const char **ret, size_t *ret_n)
{
    *ret = ++l->at;
    for (; l->at < l->end && *l->at != '"'; l->at++) {
        if ((unsigned char)*l->at < 0x20)
            return bad(l, "in string literal");
        if (*l->at != '\\')
            continue;
        if (++l->at == l->end)
            return end_of_input(l);
        if (*l->at == 'u') {
            for (int i = 0; i < 4; i++)
                if (++l->at == l->end || !isxdigit((unsigned char)*l->at))
                    return bad(l, "in \\u hexadecimal character escape");
        } else if (*l->at == '\0' || strchr("\"\\/bfnrt", *l->at) == NULL) {
            return bad(l, "in string escape code");
        }
    }
    if (l->at == l->end)
        return end_of_input(l);
    *ret_n = (size_t)(l->at++ - *ret);
    return true;
}

static bool look_digits(struct look *l, const char *where)
{
    if (l->at == l->end || !isdigit((unsigned char)*l->at))
        return bad(l, where);
    while (l->at < l->end && isdigit((unsigned char)*l->at))
        l->at++;
    return true;
}

static bool look_number(struct look *l)
{
    if (*l->at == '-')
        l->at++;
    if (l->at < l->end && *l->at == '0')
        l->at++;
    else if (!look_digits(l, "in numeric literal"))
        return false;
    if (l->at < l->end && *l->at == '.') {
        l->at++;
        if (!look_digits(l, "after decimal point in numeric literal"))
            return false;
    }
    if (l->at < l->end && (*l->at == 'e' || *l->at == 'E')) {
        l->at++;
        if (l->at < l->end && (*l->at == '+' || *l->at == '-'))
            l->at++;
        return look_digits(l, "in exponent of numeric literal");
    }
    return true;
}

static bool look_word(struct look *l, const char *word)
{
    char where[64];

    for (size_t i = 0; word[i] != '\0'; i++, l->at++) {
        if (l->at < l->end && *l->at == word[i])
            continue;
        snprintf(where, sizeof(where), "in literal %s (expecting '%c')", word, word[i]);
        return bad(l, where);
    }
    return true;
}

static void note_member(struct look *l, json_t *seen, const char *name, size_t n)
{
    str_auto key = malloc(n + 1); /* the text that name points into has no NUL */

    if (key == NULL || l->twice == NULL)
        return;
    memcpy(key, name, n);
    key[n] = '\0';
    if (json_object_get(seen, key) == NULL) {
        json_object_set_new(seen, key, json_true());
        return;
    }
    if (json_array_size(l->twice) < JSON_LOOK_TWICE_MAX && !l->path.failed)
        json_array_append_new(l->twice, json_sprintf("%s%s%s", l->path.p, l->path.n > 0 ? "." : "", key));
}

static void path_cut(struct look *l, size_t n)
{
    if (!l->path.failed && n <= l->path.n) {
        l->path.n = n;
        l->path.p[n] = '\0';
    }
}

static bool look_member(struct look *l, json_t *seen)
{
    const size_t mark = l->path.n;
    const char *name = NULL;
    size_t n = 0;
    bool ok;

    if (l->at == l->end || *l->at != '"')
        return bad(l, "looking for beginning of object key string");
    if (!look_string(l, &name, &n))
        return false;
    note_member(l, seen, name, n);
    blanks(l);
    if (l->at == l->end || *l->at != ':')
        return bad(l, "after object key");
    l->at++;
    buf_addf(&l->path, "%s%.*s", mark > 0 ? "." : "", (int)(n < 256 ? n : 256), name);
    blanks(l);
    ok = look_value(l);
    path_cut(l, mark);
    return ok;
}

static bool look_object(struct look *l)
{
    json_auto_t *seen = json_object();

    l->at++;
    blanks(l);
    if (l->at < l->end && *l->at == '}') {
        l->at++;
        return true;
    }
    while (look_member(l, seen)) {
        blanks(l);
        if (l->at < l->end && *l->at == '}') {
            l->at++;
            return true;
        }
        if (l->at == l->end || *l->at != ',')
            return bad(l, "after object key:value pair");
        l->at++;
        blanks(l);
    }
    return false;
}

static bool look_array(struct look *l)
{
    const size_t mark = l->path.n;

    l->at++;
    blanks(l);
    if (l->at < l->end && *l->at == ']') {
        l->at++;
        return true;
    }
    for (size_t i = 0;; i++) {
        buf_addf(&l->path, "[%zu]", i);
        if (!look_value(l))
            return false;
        path_cut(l, mark);
        blanks(l);
        if (l->at < l->end && *l->at == ']') {
            l->at++;
            return true;
        }
        if (l->at == l->end || *l->at != ',')
            return bad(l, "after array element");
        l->at++;
        blanks(l);
    }
}

static bool look_value(struct look *l)
{
    const char *text;
    size_t n;
    bool ok;

    if (l->at == l->end)
        return end_of_input(l);
    if (++l->depth > JSON_LOOK_DEPTH) {
        snprintf(l->why, l->size, "exceeded max depth");
        return false;
    }
    if (*l->at == '{')
        ok = look_object(l);
    else if (*l->at == '[')
        ok = look_array(l);
    else if (*l->at == '"')
        ok = look_string(l, &text, &n);
    else if (*l->at == '-' || isdigit((unsigned char)*l->at))
        ok = look_number(l);
    else if (*l->at == 't' || *l->at == 'f' || *l->at == 'n')
        ok = look_word(l, *l->at == 't' ? "true" : *l->at == 'f' ? "false" : "null");
    else
        ok = bad(l, "looking for beginning of value");
    l->depth--;
    return ok;
}

void json_look(const char *text, size_t n, char *why, size_t size, json_t *twice)
{
    struct look l = { .at = text != NULL ? text : "",
                      .why = why,
                      .size = size,
                      .path = BUF_INIT(PATH_MAX_BYTES),
                      .twice = twice };

    l.end = l.at + n;
    why[0] = '\0';
    buf_adds(&l.path, "");
    blanks(&l);
    if (look_value(&l)) {
        blanks(&l);
        if (l.at < l.end)
            bad(&l, "after top-level value");
    }
    buf_wipe(&l.path);
}
