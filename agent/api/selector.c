/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/selector.h"

#include "agent/api/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SELECTOR_MAX 65536 /* kubectl's are on a command line */

enum sel_op { SEL_EXISTS, SEL_ABSENT, SEL_IN, SEL_NOT_IN, SEL_GREATER, SEL_LESS };

struct sel_requirement {
    enum sel_op op;
    char *key;
    struct api_strs values;
    int64_t number; /* of > and < */
};

struct api_selector {
    struct arena arena;
    struct sel_requirement *v;
    size_t n;
};

enum sel_token {
    TOK_END,
    TOK_WORD,
    TOK_COMMA,
    TOK_NOT,
    TOK_EQUAL,
    TOK_NOT_EQUAL,
    TOK_GREATER,
    TOK_LESS,
    TOK_OPEN,
    TOK_CLOSE
};

struct sel_lexer {
    const char *text; /* for messages */
    const char *at;
    enum sel_token token; /* the next one */
    const char *word;
    size_t word_n;
};

static void lex_next(struct sel_lexer *l)
{
    l->at += strspn(l->at, " \t\r\n");
    l->word = l->at;
    l->word_n = 1;
    switch (*l->at) {
    case '\0':
        l->word_n = 0;
        l->token = TOK_END;
        return;
    case ',':
        l->token = TOK_COMMA;
        break;
    case '(':
        l->token = TOK_OPEN;
        break;
    case ')':
        l->token = TOK_CLOSE;
        break;
    case '>':
        l->token = TOK_GREATER;
        break;
    case '<':
        l->token = TOK_LESS;
        break;
    case '!':
        l->token = l->at[1] == '=' ? TOK_NOT_EQUAL : TOK_NOT;
        l->word_n = l->at[1] == '=' ? 2 : 1;
        break;
    case '=':
        l->token = TOK_EQUAL;
        l->word_n = l->at[1] == '=' ? 2 : 1;
        break;
    default:
        l->token = TOK_WORD;
        l->word_n = strcspn(l->at, " \t\r\n,()><!=");
        break;
    }
    l->at += l->word_n;
}

static bool lex_word_is(const struct sel_lexer *l, const char *word)
{
    return l->token == TOK_WORD && l->word_n == strlen(word) && memcmp(l->word, word, l->word_n) == 0;
}

static enum err_code unexpected(const struct sel_lexer *l, const char *wanted, struct err *e)
{
    if (l->token == TOK_END)
        return err_set(e, ERR_INVALID, "label selector \"%.200s\" ends where %s is expected", l->text,
                       wanted);
    return err_set(e, ERR_INVALID, "label selector \"%.200s\": found \"%.*s\" where %s is expected", l->text,
                   (int)(l->word_n > 80 ? 80 : l->word_n), l->word, wanted);
}

static enum err_code selector_add_value(struct api_selector *s, struct sel_requirement *r, const char *p,
                                        size_t n, struct err *e)
{
    char *copy = arena_strndup(&s->arena, p, n), **grown;
    const char *rule;

    if (copy == NULL)
        return err_nomem(e);
    rule = api_format_rule(API_FMT_LABEL_VALUE, copy);
    if (rule != NULL)
        return err_set(e, ERR_INVALID, "label selector: the value %s of %s %s", QUOTE(copy), r->key, rule);
    if ((r->values.n & (r->values.n + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
        grown = arena_alloc(&s->arena, (r->values.n * 2 + 1) * sizeof(*grown));
        if (grown == NULL)
            return err_nomem(e);
        if (r->values.n > 0)
            memcpy(grown, r->values.v, r->values.n * sizeof(*grown));
        r->values.v = grown;
    }
    r->values.v[r->values.n++] = copy;
    return ERR_OK;
}

/* "(a,b)"; "(a,)" and "(,a)" include the empty value, as in Kubernetes; "()" is rejected. */
static enum err_code parse_set(struct api_selector *s, struct sel_lexer *l, struct sel_requirement *r,
                               struct err *e)
{
    if (l->token != TOK_OPEN)
        return unexpected(l, "'('", e);
    lex_next(l);
    if (l->token == TOK_CLOSE)
        return err_set(e, ERR_INVALID, "label selector \"%.200s\": the set of values of %s is empty", l->text,
                       r->key);
    for (;;) {
        size_t n = l->token == TOK_WORD ? l->word_n : 0;
        if (selector_add_value(s, r, l->word, n, e) != ERR_OK)
            return e->code;
        if (l->token == TOK_WORD)
            lex_next(l);
        if (l->token == TOK_CLOSE)
            break;
        if (l->token != TOK_COMMA)
            return unexpected(l, "',' or ')'", e);
        lex_next(l);
    }
    lex_next(l);
    return ERR_OK;
}

static enum err_code parse_number(struct sel_lexer *l, struct sel_requirement *r, struct err *e)
{
    char digits[32], *end;

    if (l->token != TOK_WORD)
        return unexpected(l, "a whole number", e);
    if (l->word_n < sizeof(digits)) {
        memcpy(digits, l->word, l->word_n);
        digits[l->word_n] = '\0';
        errno = 0;
        r->number = strtoll(digits, &end, 10);
        if (errno == 0 && *end == '\0' && digits[0] != '+') {
            lex_next(l);
            return ERR_OK;
        }
    }
    return unexpected(l, "a whole number", e);
}

static enum err_code parse_operator(struct api_selector *s, struct sel_lexer *l, struct sel_requirement *r,
                                    struct err *e)
{
    switch (l->token) {
    case TOK_END:
    case TOK_COMMA:
        r->op = SEL_EXISTS;
        return ERR_OK;
    case TOK_EQUAL:
    case TOK_NOT_EQUAL:
        r->op = l->token == TOK_EQUAL ? SEL_IN : SEL_NOT_IN;
        lex_next(l);
        if (l->token != TOK_WORD && l->token != TOK_END && l->token != TOK_COMMA)
            return unexpected(l, "a value", e);
        if (selector_add_value(s, r, l->word, l->token == TOK_WORD ? l->word_n : 0, e) != ERR_OK)
            return e->code;
        if (l->token == TOK_WORD)
            lex_next(l);
        return ERR_OK;
    case TOK_GREATER:
    case TOK_LESS:
        r->op = l->token == TOK_GREATER ? SEL_GREATER : SEL_LESS;
        lex_next(l);
        return parse_number(l, r, e);
    case TOK_WORD:
        if (lex_word_is(l, "in") || lex_word_is(l, "notin")) {
            r->op = lex_word_is(l, "in") ? SEL_IN : SEL_NOT_IN;
            lex_next(l);
            return parse_set(s, l, r, e);
        }
        break;
    case TOK_NOT:
    case TOK_OPEN:
    case TOK_CLOSE:
        break;
    }
    return unexpected(l, "one of , = == != > < in notin", e);
}

static enum err_code parse_requirement(struct api_selector *s, struct sel_lexer *l, struct sel_requirement *r,
                                       struct err *e)
{
    bool negated = l->token == TOK_NOT;
    const char *rule;

    if (negated)
        lex_next(l);
    if (l->token != TOK_WORD)
        return unexpected(l, "a label key", e);
    r->key = arena_strndup(&s->arena, l->word, l->word_n);
    if (r->key == NULL)
        return err_nomem(e);
    rule = api_format_rule(API_FMT_LABEL_KEY, r->key);
    if (rule != NULL)
        return err_set(e, ERR_INVALID, "label selector: the key %s %s", QUOTE(r->key), rule);
    lex_next(l);
    if (!negated)
        return parse_operator(s, l, r, e);
    r->op = SEL_ABSENT;
    return ERR_OK;
}

static enum err_code parse_all(struct api_selector *s, struct sel_lexer *l, size_t max, struct err *e)
{
    s->v = arena_alloc(&s->arena, max * sizeof(*s->v));
    if (s->v == NULL)
        return err_nomem(e);
    lex_next(l);
    if (l->token == TOK_END)
        return ERR_OK;
    for (;;) {
        if (parse_requirement(s, l, &s->v[s->n], e) != ERR_OK)
            return e->code;
        s->n++;
        if (l->token == TOK_END)
            return ERR_OK;
        if (l->token != TOK_COMMA)
            return unexpected(l, "','", e);
        lex_next(l);
    }
}

enum err_code api_selector_parse(const char *text, struct api_selector **ret, struct err *e)
{
    struct sel_lexer l = { .text = text, .at = text };
    struct api_selector *s;
    size_t max = 1;

    if (strlen(text) > SELECTOR_MAX)
        return err_set(e, ERR_INVALID, "label selector is longer than %d bytes", SELECTOR_MAX);
    for (const char *p = text; *p != '\0'; p++)
        max += *p == ',';
    s = calloc(1, sizeof(*s));
    if (s == NULL)
        return err_nomem(e);
    if (parse_all(s, &l, max, e) != ERR_OK) {
        api_selector_free(s);
        return e->code;
    }
    *ret = s;
    return ERR_OK;
}

static bool selector_has_value(const struct sel_requirement *r, const char *value)
{
    for (size_t i = 0; i < r->values.n; i++) {
        if (strcmp(r->values.v[i], value) == 0)
            return true;
    }
    return false;
}

static bool requirement_matches(const struct sel_requirement *r, const char *value)
{
    char *end;
    int64_t number;

    switch (r->op) {
    case SEL_EXISTS:
        return value != NULL;
    case SEL_ABSENT:
        return value == NULL;
    case SEL_IN:
        return value != NULL && selector_has_value(r, value);
    case SEL_NOT_IN:
        return value == NULL || !selector_has_value(r, value);
    case SEL_GREATER:
    case SEL_LESS:
        if (value == NULL || *value == '\0')
            return false;
        errno = 0;
        number = strtoll(value, &end, 10);
        if (errno != 0 || *end != '\0')
            return false;
        return r->op == SEL_GREATER ? number > r->number : number < r->number;
    }
    return false;
}

bool api_selector_matches(const struct api_selector *s, const struct api_kvs *labels)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!requirement_matches(&s->v[i], api_kvs_get(labels, s->v[i].key)))
            return false;
    }
    return true;
}

void api_selector_free(struct api_selector *s)
{
    if (s == NULL)
        return;
    arena_done(&s->arena);
    free(s);
}
