/* SPDX-License-Identifier: Apache-2.0 */
/* jsonpath: the text between paths, strings, and ranges. */
#include "agent/cli/template/template.h"

#include "base/scope.h"

#include <string.h>

enum { NESTED_MAX = 16 };

struct run {
    struct jsonpath_look look;
    struct buf *out;
    unsigned depth;
};

/* ---- output ---- */

static void jsonpath_add_value(struct buf *out, const json_t *value)
{
    str_auto text = NULL;

    if (json_is_string(value)) {
        buf_add(out, json_string_value(value), json_string_length(value));
        return;
    }
    text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    buf_adds(out, text != NULL ? text : "");
}

static enum err_code print_path(struct run *r, const json_t *current, const char *p, size_t n, struct err *e)
{
    json_auto_t *found = NULL;
    json_t *value;
    size_t i;

    if (cli_jsonpath_find(&r->look, current, p, n, &found, e) != ERR_OK)
        return e->code;
    json_array_foreach (found, i, value) {
        if (i > 0)
            buf_addc(r->out, ' ');
        jsonpath_add_value(r->out, value);
    }
    return ERR_OK;
}

static void print_string(struct buf *out, const char *p, size_t n)
{
    for (const char *end = p + n; p < end; p++) {
        if (*p == '\\' && p + 1 < end) {
            p++;
            buf_addc(out, *p == 'n' ? '\n' : *p == 't' ? '\t' : *p == 'r' ? '\r' : *p);
        } else {
            buf_addc(out, *p);
        }
    }
}

/* ---- blocks ---- */

struct block { /* "{...}" without the braces and inner blanks */
    const char *p;
    size_t n;
    const char *open, *after; /* where it begins and ends, including them */
};

static bool next_block(const char *open, const char *end, struct block *ret)
{
    char quote = '\0';
    const char *p = open + 1;

    for (; p < end && (quote != '\0' || *p != '}'); p++) {
        if (quote != '\0' && *p == '\\' && p + 1 < end)
            p++;
        else if (quote != '\0' ? *p == quote : *p == '"' || *p == '\'')
            quote = quote != '\0' ? '\0' : *p;
    }
    if (p == end)
        return false;
    ret->open = open;
    ret->after = p + 1;
    ret->p = open + 1 + strspn(open + 1, " ");
    ret->n = (size_t)(p - ret->p);
    while (ret->n > 0 && ret->p[ret->n - 1] == ' ')
        ret->n--;
    return true;
}

static bool jsonpath_is_word(const struct block *b, const char *word)
{
    const size_t n = strlen(word);

    return b->n >= n && memcmp(b->p, word, n) == 0 && (b->n == n || b->p[n] == ' ');
}

/* The {end} of the range whose body begins at `p`. */
static bool find_end(const char *p, const char *end, struct block *ret)
{
    unsigned open = 1;

    while ((p = memchr(p, '{', (size_t)(end - p))) != NULL && next_block(p, end, ret)) {
        open += jsonpath_is_word(ret, "range");
        open -= jsonpath_is_word(ret, "end");
        if (open == 0)
            return true;
        p = ret->after;
    }
    return false;
}

static enum err_code print(struct run *r, const json_t *current, const char *p, const char *end,
                           struct err *e);

static enum err_code print_range(struct run *r, const json_t *current, const struct block *b, const char *end,
                                 const char **ret_after, struct err *e)
{
    const char *path = b->p + strlen("range");
    json_auto_t *found = NULL;
    struct block last;
    json_t *value;
    size_t i;

    if (!find_end(b->after, end, &last))
        return cli_jsonpath_bad(e, "its {end} is missing", b->p, b->n);
    if (++r->depth > NESTED_MAX)
        return cli_jsonpath_bad(e, "ranges are nested too deep", b->p, b->n);
    path += strspn(path, " ");
    if (cli_jsonpath_find(&r->look, current, path, (size_t)(b->p + b->n - path), &found, e) != ERR_OK)
        return e->code;
    json_array_foreach (found, i, value)
        if (print(r, value, b->after, last.open, e) != ERR_OK)
            return e->code;
    r->depth--;
    *ret_after = last.after;
    return ERR_OK;
}

static enum err_code print(struct run *r, const json_t *current, const char *p, const char *end,
                           struct err *e)
{
    while (p < end) {
        const char *open = memchr(p, '{', (size_t)(end - p));
        struct block b;

        buf_add(r->out, p, (size_t)((open != NULL ? open : end) - p));
        if (open == NULL)
            break;
        if (!next_block(open, end, &b))
            return cli_jsonpath_bad(e, "a } is missing", open + 1, (size_t)(end - open - 1));
        p = b.after;
        if (jsonpath_is_word(&b, "end"))
            return cli_jsonpath_bad(e, "there is no range before it", b.p, b.n);
        if (jsonpath_is_word(&b, "range")) {
            if (print_range(r, current, &b, end, &p, e) != ERR_OK)
                return e->code;
        } else if (b.n >= 2 && (b.p[0] == '"' || b.p[0] == '\'') && b.p[b.n - 1] == b.p[0]) {
            print_string(r->out, b.p + 1, b.n - 2);
        } else if (print_path(r, current, b.p, b.n, e) != ERR_OK) {
            return e->code;
        }
    }
    return ERR_OK;
}

enum err_code cli_jsonpath(const char *text, const json_t *value, struct buf *out, struct err *e)
{
    struct run r = { .look = { .root = value }, .out = out };

    if (strchr(text, '{') == NULL) /* ".status.podIP" */
        return print_path(&r, value, text, strlen(text), e);
    return print(&r, value, text, text + strlen(text), e);
}
