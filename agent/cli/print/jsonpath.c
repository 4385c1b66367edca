/* SPDX-License-Identifier: Apache-2.0 */
/* -o jsonpath=TEMPLATE, like kubectl (k8s.io/client-go/util/jsonpath) but without filters, slices and "..":
 * text, and in braces a path, a "string" or {range PATH} ... {end}. Missing values print nothing, several
 * values are separated by blanks. */
#include "agent/cli/print/print.h"

#include "base/parse.h"

#include <string.h>

enum { NESTED_MAX = 16 };

struct run {
    const json_t *root;
    struct buf *out;
    unsigned depth;
};

static enum err_code jsonpath_bad(struct err *e, const char *what, const char *at, size_t n)
{
    return err_set(e, ERR_INVALID, "jsonpath: %s: {%.*s}", what, (int)(n < 200 ? n : 200), at);
}

/* ---- paths ---- */

static void jsonpath_add_all(json_t *to, json_t *of)
{
    const char *key;
    json_t *value;
    size_t i;

    json_array_foreach (of, i, value)
        json_array_append(to, value);
    if (json_is_object(of)) {
        mem_auto const char **keys = cli_sorted_keys(of);

        for (i = 0; keys != NULL && (key = keys[i]) != NULL; i++)
            json_array_append(to, json_object_get(of, key));
    }
}

static void add_index(json_t *to, const json_t *of, int64_t index)
{
    const int64_t n = (int64_t)json_array_size(of);

    if (index < 0)
        index += n;
    if (index >= 0 && index < n)
        json_array_append(to, json_array_get(of, (size_t)index));
}

struct step { /* a key, an index, or all */
    enum { STEP_KEY, STEP_INDEX, STEP_ALL } kind;
    char key[256];
    int64_t index;
};

/* "[0]", "[*]", "['key']": *ret_n bytes. */
static bool parse_brackets(const char *p, const char *end, struct step *ret, size_t *ret_n)
{
    const bool quoted = p + 1 < end && p[1] == '\'';
    const char *close = quoted ? memchr(p + 2, '\'', (size_t)(end - p - 2)) : NULL;
    const char *from = quoted ? p + 2 : p + 1, *to;

    if (quoted && (close == NULL || close + 1 == end || close[1] != ']'))
        return false;
    to = quoted ? close : memchr(p, ']', (size_t)(end - p));
    if (to == NULL || (size_t)(to - from) >= sizeof(ret->key))
        return false;
    snprintf(ret->key, sizeof(ret->key), "%.*s", (int)(to - from), from);
    *ret_n = (size_t)(to - p) + (quoted ? 2 : 1);
    ret->kind = quoted ? STEP_KEY : strcmp(ret->key, "*") == 0 ? STEP_ALL : STEP_INDEX;
    return ret->kind != STEP_INDEX ||
           parse_i64(ret->key, -1000000, 1000000, &ret->index, "index", ERR_IGNORED) == ERR_OK;
}

/* ".key", ".key\.with\.dots", ".*": *ret_n bytes, 1 for a lone dot. */
static bool parse_dotted(const char *p, const char *end, struct step *ret, size_t *ret_n)
{
    const char *at = p + 1;
    size_t n = 0;

    for (; at < end && *at != '.' && *at != '['; at++) {
        if (*at == '\\' && at + 1 < end)
            at++;
        if (n + 1 >= sizeof(ret->key))
            return false;
        ret->key[n++] = *at;
    }
    ret->key[n] = '\0';
    ret->kind = strcmp(ret->key, "*") == 0 ? STEP_ALL : STEP_KEY;
    *ret_n = (size_t)(at - p);
    return n > 0 || at == end;
}

static json_t *take_step(json_t *nodes, const struct step *s)
{
    json_t *next = json_array(), *node;
    size_t i;

    json_array_foreach (nodes, i, node) {
        if (s->kind == STEP_ALL)
            jsonpath_add_all(next, node);
        else if (s->kind == STEP_INDEX)
            add_index(next, node, s->index);
        else if (s->key[0] == '\0')
            json_array_append(next, node);
        else if (json_object_get(node, s->key) != NULL)
            json_array_append(next, json_object_get(node, s->key));
    }
    json_decref(nodes);
    return next;
}

/* The values at the path, as a new array. */
static enum err_code jsonpath_find(const struct run *r, const json_t *current, const char *p, size_t n,
                                   json_t **ret, struct err *e)
{
    const char *end = p + n, *at = p;
    json_t *nodes;

    if (at < end && (*at == '$' || *at == '@'))
        current = *at++ == '$' ? r->root : current;
    nodes = json_pack("[O]", current);
    while (at < end) {
        struct step s = { .kind = STEP_KEY };
        size_t used;

        if (*at == '[' ? !parse_brackets(at, end, &s, &used)
                       : *at != '.' || !parse_dotted(at, end, &s, &used)) {
            json_decref(nodes);
            return jsonpath_bad(e, "a path like .status.podIP or .items[0].metadata.name is expected", p, n);
        }
        nodes = take_step(nodes, &s);
        at += used;
    }
    *ret = nodes;
    return ERR_OK;
}

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

static enum err_code print_path(const struct run *r, const json_t *current, const char *p, size_t n,
                                struct err *e)
{
    json_auto_t *found = NULL;
    json_t *value;
    size_t i;

    if (jsonpath_find(r, current, p, n, &found, e) != ERR_OK)
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
        return jsonpath_bad(e, "its {end} is missing", b->p, b->n);
    if (++r->depth > NESTED_MAX)
        return jsonpath_bad(e, "ranges are nested too deep", b->p, b->n);
    path += strspn(path, " ");
    if (jsonpath_find(r, current, path, (size_t)(b->p + b->n - path), &found, e) != ERR_OK)
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
            return jsonpath_bad(e, "a } is missing", open + 1, (size_t)(end - open - 1));
        p = b.after;
        if (jsonpath_is_word(&b, "end"))
            return jsonpath_bad(e, "there is no range before it", b.p, b.n);
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
    struct run r = { .root = value, .out = out };

    if (strchr(text, '{') == NULL) /* ".status.podIP" */
        return print_path(&r, value, text, strlen(text), e);
    return print(&r, value, text, text + strlen(text), e);
}
