/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of jsonpath. A path is evaluated while it is parsed: each step turns the values found so far into the
 * next ones. */
#include "agent/cli/template/template.h"

#include "base/codec/json.h"
#include "base/parse.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = 256,
    FILTERS_MAX = 8, /* nested */
    INDEX_MAX = 1000000000
};

enum err_code cli_jsonpath_bad(struct err *e, const char *what, const char *at, size_t n)
{
    return err_set(e, ERR_INVALID, "jsonpath: %s: {%.*s}", what, (int)(n < 200 ? n : 200), at);
}

/* ---- values ---- */

static void found(struct jsonpath_look *l, json_t *to, json_t *value)
{
    if (l->values++ < JSONPATH_VALUES_MAX)
        json_array_append(to, value);
}

static void add_children(struct jsonpath_look *l, json_t *to, json_t *of)
{
    mem_auto const char **keys = json_is_object(of) ? json_sorted_keys(of) : NULL;
    json_t *value;
    size_t i;

    json_array_foreach (of, i, value)
        found(l, to, value);
    for (i = 0; keys != NULL && keys[i] != NULL; i++)
        found(l, to, json_object_get(of, keys[i]));
}

/* The value and all below it that have something below them, as client-go has it. */
static void add_descendants(struct jsonpath_look *l, json_t *to, json_t *of)
{
    mem_auto const char **keys = json_is_object(of) ? json_sorted_keys(of) : NULL;
    json_t *value;
    size_t i;

    if (json_object_size(of) + json_array_size(of) == 0 || l->values >= JSONPATH_VALUES_MAX)
        return;
    found(l, to, of);
    json_array_foreach (of, i, value)
        add_descendants(l, to, value);
    for (i = 0; keys != NULL && keys[i] != NULL; i++)
        add_descendants(l, to, json_object_get(of, keys[i]));
}

static void add_index(struct jsonpath_look *l, json_t *to, const json_t *of, int64_t index)
{
    const int64_t n = (int64_t)json_array_size(of);

    if (index < 0)
        index += n;
    if (index >= 0 && index < n)
        found(l, to, json_array_get(of, (size_t)index));
}

/* ---- [...]: indices, slices, keys ---- */

static void trim(const char **p, size_t *n)
{
    while (*n > 0 && **p == ' ') {
        ++*p;
        --*n;
    }
    while (*n > 0 && (*p)[*n - 1] == ' ')
        --*n;
}

/* "" stays as it is. */
static bool take_number(const char *p, size_t n, int64_t *ret)
{
    char text[16];

    if (n == 0)
        return true;
    if (n >= sizeof(text))
        return false;
    memcpy(text, p, n);
    text[n] = '\0';
    return parse_i64(text, -INDEX_MAX, INDEX_MAX, ret, "index", ERR_IGNORED) == ERR_OK;
}

/* "1", "1:3", "-2:", "::2" */
struct slice {
    bool has_to, single;
    int64_t from, to, step;
};

static bool parse_slice(const char *p, size_t n, struct slice *ret)
{
    const char *first = memchr(p, ':', n), *end = p + n, *second;

    *ret = (struct slice){ .single = first == NULL, .step = 1 };
    if (first == NULL)
        return n > 0 && take_number(p, n, &ret->from);
    second = memchr(first + 1, ':', (size_t)(end - first - 1));
    ret->has_to = (second != NULL ? second : end) > first + 1;
    return take_number(p, (size_t)(first - p), &ret->from) &&
           take_number(first + 1, (size_t)((second != NULL ? second : end) - first - 1), &ret->to) &&
           (second == NULL || take_number(second + 1, (size_t)(end - second - 1), &ret->step)) &&
           ret->step > 0;
}

static void add_slice(struct jsonpath_look *l, json_t *to, const json_t *of, const struct slice *s)
{
    const int64_t n = (int64_t)json_array_size(of);
    int64_t from = s->from < 0 ? s->from + n : s->from, end = !s->has_to ? n : s->to < 0 ? s->to + n : s->to;

    if (s->single) {
        add_index(l, to, of, s->from);
        return;
    }
    for (int64_t i = from < 0 ? 0 : from; i < end && i < n; i += s->step)
        found(l, to, json_array_get(of, (size_t)i));
}

/* 'a.b/c' is a key; without such a key it is a path, as for kubectl: 'metadata.name'. */
static enum err_code add_quoted(struct jsonpath_look *l, json_t *to, json_t *of, const char *p, size_t n,
                                struct err *e)
{
    json_auto_t *below = NULL;
    char key[KEY_MAX + 2];
    json_t *value;
    size_t i;

    snprintf(key, sizeof(key), ".%.*s", (int)n, p);
    value = json_object_get(of, key + 1);
    if (value != NULL) {
        found(l, to, value);
        return ERR_OK;
    }
    if (memchr(p, '.', n) == NULL && memchr(p, '\\', n) == NULL)
        return ERR_OK;
    if (strpbrk(key, "[?*") != NULL || cli_jsonpath_find(l, of, key, n + 1, &below, ERR_IGNORED) != ERR_OK)
        return l->values > JSONPATH_VALUES_MAX ? err_set(e, ERR_INVALID, "jsonpath: too many values")
                                               : ERR_OK;
    json_array_foreach (below, i, value)
        found(l, to, value);
    return ERR_OK;
}

/* One of the parts between commas. */
static enum err_code add_selected(struct jsonpath_look *l, json_t *to, json_t *nodes, const char *p, size_t n,
                                  struct err *e)
{
    const bool quoted = n >= 2 && (p[0] == '\'' || p[0] == '"') && p[n - 1] == p[0];
    struct slice s = { 0 };
    json_t *node;
    size_t i;

    if (quoted ? n - 2 >= KEY_MAX : !(n == 1 && p[0] == '*') && !parse_slice(p, n, &s))
        return cli_jsonpath_bad(e, "[n], [from:to:step], [*], ['key'] or [?(...)] is expected", p, n);
    json_array_foreach (nodes, i, node) {
        if (quoted) {
            if (add_quoted(l, to, node, p + 1, n - 2, e) != ERR_OK)
                return e->code;
        } else if (p[0] == '*') {
            add_children(l, to, node);
        } else {
            add_slice(l, to, node, &s);
        }
    }
    return ERR_OK;
}

/* ---- [?(...)]: filters ---- */

enum comparison { HAS, EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL };

struct filter {
    struct str left, right;
    enum comparison comparison;
};

/* The first of these bytes outside quotes and brackets; NULL: none. */
static const char *outside_quotes(const char *p, const char *end, const char *bytes)
{
    char quote = '\0';
    unsigned open = 0;

    for (; p < end; p++) {
        if (quote != '\0') {
            if (*p == '\\' && p + 1 < end)
                p++;
            else if (*p == quote)
                quote = '\0';
        } else if (*p == '"' || *p == '\'') {
            quote = *p;
        } else if (open == 0 && *p != '\0' && strchr(bytes, *p) != NULL) {
            return p;
        } else if (*p == '[' || *p == '(') {
            open++;
        } else if ((*p == ']' || *p == ')') && open > 0) {
            open--;
        }
    }
    return NULL;
}

/* "@.a == 'x'" */
static enum err_code parse_filter(const char *p, size_t n, struct filter *ret, struct err *e)
{
    static const char *const words[] = { [EQUAL] = "==",      [UNEQUAL] = "!=", [LESS] = "<",
                                         [LESS_EQUAL] = "<=", [GREATER] = ">",  [GREATER_EQUAL] = ">=" };
    const char *end = p + n, *at = outside_quotes(p, end, "=!<>"), *after = at;

    *ret = (struct filter){ .left = { p, at != NULL ? (size_t)(at - p) : n } };
    trim(&ret->left.p, &ret->left.n);
    while (after != NULL && after < end && strchr("=!<>", *after) != NULL && *after != '\0')
        after++;
    for (size_t i = EQUAL; at != NULL && i < ARRAY_LEN(words); i++)
        if (strlen(words[i]) == (size_t)(after - at) && memcmp(words[i], at, strlen(words[i])) == 0)
            ret->comparison = (enum comparison)i;
    if (at != NULL) {
        ret->right = (struct str){ after, (size_t)(end - after) };
        trim(&ret->right.p, &ret->right.n);
    }
    if (at != NULL && ret->comparison == HAS)
        return cli_jsonpath_bad(e, "one of == != < <= > >= is expected", p, n);
    if (ret->left.n == 0 || (at != NULL && ret->right.n == 0))
        return cli_jsonpath_bad(e, "a filter like ?(@.name==\"web\") is expected", p, n);
    return ERR_OK;
}

static json_t *literal(const char *p, size_t n)
{
    buf_auto text = BUF_INIT(64 * 1024);
    size_t i;

    if (n < 2 || (p[0] != '"' && p[0] != '\'') || p[n - 1] != p[0])
        return json_loadb(p, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    for (i = 1; i + 1 < n; i++) {
        if (p[i] == '\\' && i + 2 < n)
            i++;
        buf_addc(&text, p[i]);
    }
    return json_string_of(text.p);
}

/* One side, as a list of values. */
static enum err_code side(struct jsonpath_look *l, const json_t *current, const struct str *s, json_t **ret,
                          struct err *e)
{
    json_t *value;

    if (s->p[0] == '@' || s->p[0] == '$' || s->p[0] == '.')
        return cli_jsonpath_find(l, current, s->p, s->n, ret, e);
    value = literal(s->p, s->n);
    if (value == NULL || json_is_object(value) || json_is_array(value)) {
        json_decref(value);
        return cli_jsonpath_bad(e, "a path, a \"string\", a number, true or false is expected", s->p, s->n);
    }
    *ret = json_pack("[o]", value);
    return ERR_OK;
}

/* Values of different types are unequal; only numbers and texts have an order. */
static bool compare(enum comparison c, const json_t *a, const json_t *b)
{
    const bool numbers = json_is_number(a) && json_is_number(b);
    const double x = json_number_value(a), y = json_number_value(b);
    int order;

    if (c == EQUAL || c == UNEQUAL) /* not by difference: whole numbers are compared exactly */
        return (json_equal(a, b) || (numbers && !(json_is_integer(a) && json_is_integer(b)) && !(x < y) &&
                                     !(x > y))) == (c == EQUAL);
    if (!numbers && !(json_is_string(a) && json_is_string(b)))
        return false;
    order = numbers ? (x > y) - (x < y) : strcmp(json_string_value(a), json_string_value(b));
    return c == LESS ? order < 0 : c == LESS_EQUAL ? order <= 0 : c == GREATER ? order > 0 : order >= 0;
}

static enum err_code passes(struct jsonpath_look *l, const struct filter *f, const json_t *value, bool *ret,
                            struct err *e)
{
    json_auto_t *left = NULL, *right = NULL;

    *ret = false;
    if (side(l, value, &f->left, &left, e) != ERR_OK)
        return e->code;
    if (f->comparison == HAS) {
        *ret = json_array_size(left) > 0;
        return ERR_OK;
    }
    if (side(l, value, &f->right, &right, e) != ERR_OK)
        return e->code;
    if (json_array_size(left) > 1 || json_array_size(right) > 1)
        return cli_jsonpath_bad(e, "a side of a filter has several values", f->left.p, f->left.n);
    *ret = json_array_size(left) == 1 && json_array_size(right) == 1 &&
           compare(f->comparison, json_array_get(left, 0), json_array_get(right, 0));
    return ERR_OK;
}

/* `p`: the text in the parentheses. */
static enum err_code add_filtered(struct jsonpath_look *l, json_t *to, json_t *nodes, const char *p, size_t n,
                                  struct err *e)
{
    struct filter f;
    json_t *node, *value;
    size_t i, k;
    bool pass;

    if (++l->depth > FILTERS_MAX)
        return cli_jsonpath_bad(e, "filters are nested too deep", p, n);
    /* on null, since there may be no value: an error is found in any case */
    if (parse_filter(p, n, &f, e) != ERR_OK || passes(l, &f, json_null(), &pass, e) != ERR_OK)
        return e->code;
    json_array_foreach (nodes, i, node) {
        json_array_foreach (node, k, value) {
            if (l->values++ > JSONPATH_VALUES_MAX)
                break;
            if (passes(l, &f, value, &pass, e) != ERR_OK)
                return e->code;
            if (pass)
                found(l, to, value);
        }
    }
    l->depth--;
    return ERR_OK;
}

/* `p` is behind the bracket; *ret_after behind the one that closes it. */
static enum err_code add_brackets(struct jsonpath_look *l, json_t *to, json_t *nodes, const char *p,
                                  const char *end, const char **ret_after, struct err *e)
{
    const char *close = outside_quotes(p, end, "]"), *comma;
    size_t n;

    if (close == NULL)
        return cli_jsonpath_bad(e, "a ] is missing", p, (size_t)(end - p));
    *ret_after = close + 1;
    n = (size_t)(close - p);
    trim(&p, &n);
    if (n >= 3 && p[0] == '?' && p[1] == '(' && p[n - 1] == ')')
        return add_filtered(l, to, nodes, p + 2, n - 3, e);
    do {
        const char *part = p;
        size_t part_n;

        comma = outside_quotes(p, close, ",");
        part_n = (size_t)((comma != NULL ? comma : close) - p);
        trim(&part, &part_n);
        if (add_selected(l, to, nodes, part, part_n, e) != ERR_OK)
            return e->code;
        p = comma != NULL ? comma + 1 : close;
    } while (comma != NULL);
    return ERR_OK;
}

/* ---- .key ---- */

/* `p` is behind the dot: "key", "key\.with\.dots", "*", or nothing for a lone dot. Returns the bytes used, or
 * -1. */
static ssize_t add_dotted(struct jsonpath_look *l, json_t *to, json_t *nodes, const char *p, const char *end)
{
    char key[KEY_MAX];
    const char *at = p;
    size_t n = 0, i;
    json_t *node;

    for (; at < end && *at != '.' && *at != '['; at++) {
        if (*at == '\\' && at + 1 < end)
            at++;
        if (n + 1 >= sizeof(key))
            return -1;
        key[n++] = *at;
    }
    key[n] = '\0';
    if ((n == 0 && at < end && *at != '[') || memchr(key, ' ', n) != NULL)
        return -1;
    json_array_foreach (nodes, i, node) {
        json_t *value = json_object_get(node, key);

        if (n == 0)
            found(l, to, node);
        else if (strcmp(key, "*") == 0)
            add_children(l, to, node);
        else if (value != NULL)
            found(l, to, value);
    }
    return at - p;
}

/* ---- the whole ---- */

/* Takes one step from *at. */
static enum err_code take_step(struct jsonpath_look *l, json_t *to, json_t *nodes, const char **at,
                               const char *end, struct err *e)
{
    json_t *node;
    ssize_t used;
    size_t i;

    if (**at == '[')
        return add_brackets(l, to, nodes, *at + 1, end, at, e);
    if (**at == '.' && *at + 1 < end && (*at)[1] == '.') { /* the second dot begins the next step */
        json_array_foreach (nodes, i, node)
            add_descendants(l, to, node);
        *at += *at + 2 < end && (*at)[2] != '[' ? 1 : 2;
        return ERR_OK;
    }
    used = **at == '.' ? add_dotted(l, to, nodes, *at + 1, end) : -1;
    if (used < 0)
        return cli_jsonpath_bad(e, "a path like .status.podIP or .items[0].metadata.name is expected", *at,
                                (size_t)(end - *at));
    *at += 1 + used;
    return ERR_OK;
}

enum err_code cli_jsonpath_find(struct jsonpath_look *l, const json_t *current, const char *p, size_t n,
                                json_t **ret, struct err *e)
{
    const char *end = p + n, *at = p;
    json_t *nodes;

    if (at < end && (*at == '$' || *at == '@'))
        current = *at++ == '$' ? l->root : current;
    nodes = json_pack("[O]", current);
    while (at < end) {
        json_t *next = json_array();

        ERR_IGNORE(take_step(l, next, nodes, &at, end, e));
        json_decref(nodes);
        nodes = next;
        if (e->code == ERR_OK && l->values > JSONPATH_VALUES_MAX)
            err_set(e, ERR_INVALID, "jsonpath: {%.*s} visits more than %d values", (int)(n < 200 ? n : 200),
                    p, JSONPATH_VALUES_MAX);
        if (e->code != ERR_OK) {
            json_decref(nodes);
            return e->code;
        }
    }
    *ret = nodes;
    return ERR_OK;
}
