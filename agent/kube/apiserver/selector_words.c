/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/apiserver/selector_words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 128 /* bytes of a token that are shown */

enum token { END, WORD, NOT, OPEN, CLOSE, COMMA, COMPARE, IN };

struct lexer {
    const char *at;
    enum token token; /* the next one, not consumed */
    const char *text;
    size_t size;
    char *why; /* SHOWN and some words */
    size_t why_size;
};

static bool is_special(char c)
{
    return c != '\0' && strchr("=!(),><", c) != NULL;
}

static void next(struct lexer *l)
{
    static const struct {
        const char *text;
        enum token token;
    } marks[] = { { "==", COMPARE }, { "!=", COMPARE }, { "=", COMPARE }, { "!", NOT },    { "(", OPEN },
                  { ")", CLOSE },    { ",", COMMA },    { ">", COMPARE }, { "<", COMPARE } };
    size_t i = 0;

    while (*l->at != '\0' && strchr(" \t\r\n", *l->at) != NULL)
        l->at++;
    l->text = l->at;
    if (*l->at == '\0') {
        l->token = END;
        l->size = 0;
    } else if (is_special(*l->at)) {
        while (strncmp(marks[i].text, l->at, strlen(marks[i].text)) != 0)
            i++;
        l->token = marks[i].token;
        l->size = strlen(marks[i].text);
    } else {
        for (l->size = 0; l->at[l->size] != '\0' && strchr(" \t\r\n", l->at[l->size]) == NULL &&
                          !is_special(l->at[l->size]);)
            l->size++;
        l->token = WORD;
        if ((l->size == 2 && strncmp(l->text, "in", 2) == 0) ||
            (l->size == 5 && strncmp(l->text, "notin", 5) == 0))
            l->token = IN;
    }
    l->at += l->size;
}

static bool fail(struct lexer *l, const char *before, const char *expected)
{
    snprintf(l->why, l->why_size, "%sfound '%.*s'%s", before, (int)(l->size < SHOWN ? l->size : SHOWN),
             l->text, expected);
    return false;
}

/* Where values are expected, "in" and "notin" are words. */
static bool is_word(const struct lexer *l)
{
    return l->token == WORD || l->token == IN;
}

static const char unable[] = "unable to parse requirement: ";

/* "(a,b)", from its first token on. */
static bool read_values(struct lexer *l)
{
    if (l->token != OPEN)
        return fail(l, unable, " expected: '('");
    next(l);
    if (l->token == CLOSE) {
        next(l);
        return true;
    }
    if (!is_word(l) && l->token != COMMA)
        return fail(l, unable, ", expected: ',', ')' or identifier");
    for (;;) {
        const bool comma = l->token == COMMA;

        if (!comma && !is_word(l))
            return fail(l, unable, ", expected: ',', or identifier");
        next(l);
        if (l->token == CLOSE) {
            next(l);
            return true;
        }
        if (!comma && l->token != COMMA)
            return fail(l, unable, ", expected: ',' or ')'");
    }
}

static bool read_requirement(struct lexer *l)
{
    const bool not_there = l->token == NOT;

    if (not_there)
        next(l);
    if (!is_word(l))
        return fail(l, unable, ", expected: identifier");
    next(l);
    if (not_there || l->token == END || l->token == COMMA)
        return true;
    if (l->token == IN) {
        next(l);
        return read_values(l);
    }
    if (l->token != COMPARE)
        return fail(l, unable, ", expected: in, notin, =, ==, !=, gt, lt");
    next(l);
    if (l->token == END || l->token == COMMA)
        return true;
    if (!is_word(l))
        return fail(l, unable, ", expected: identifier");
    next(l);
    return true;
}

static bool read_all(struct lexer *l)
{
    next(l);
    if (l->token == END)
        return true;
    if (!is_word(l) && l->token != NOT)
        return fail(l, "", ", expected: !, identifier, or 'end of string'");
    for (;;) {
        if (!read_requirement(l))
            return false;
        if (l->token == END)
            return true;
        if (l->token != COMMA)
            return fail(l, "", ", expected: ',' or 'end of string'");
        next(l);
        if (!is_word(l) && l->token != NOT)
            return fail(l, "", ", expected: identifier after ','");
    }
}

void selector_words(const char *text, struct err *e)
{
    char why[SHOWN + 128];
    struct lexer l = { .at = text, .why = why, .why_size = sizeof(why) };

    if (!read_all(&l))
        err_set(e, e->code, "%s", why);
}
