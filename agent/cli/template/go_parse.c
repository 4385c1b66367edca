/* SPDX-License-Identifier: Apache-2.0 */
/* A Go template becomes a tree: text, actions and blocks (text/template/parse). */
#include "agent/cli/template/internal.h"

#include <string.h>

/* Skips to the end of the action, and past blanks if the action trims them. */
static void leave_action(struct go_parser *s)
{
    const bool trims = *s->p == '-';

    s->p += trims ? 3 : 2;
    if (trims)
        go_skip_blanks(s);
}

static bool take_keyword(struct go_parser *s, const char *word)
{
    const size_t n = strlen(word);

    if (!go_is_next(s, word) || go_name_length(s->p, s->end) != n)
        return false;
    s->p += n;
    return true;
}

enum ended { AT_END, AT_ELSE, AT_EOF };
static enum err_code parse_list(struct go_parser *s, struct go_node **ret, enum ended *ended);

static enum err_code expect_action_end(struct go_parser *s)
{
    go_skip_blanks(s);
    if (!go_is_action_end(s))
        return go_fail(s, s->p, "}} is expected");
    leave_action(s);
    return ERR_OK;
}

/* Behind the keyword. */
static enum err_code parse_block(struct go_parser *s, struct go_node *node, const char *begin)
{
    const size_t scope = s->n_variables;
    enum ended ended = AT_EOF;

    if (go_parse_pipe(s, &node->pipe, "}}", true) != ERR_OK)
        return s->e->code;
    if (node->kind != GO_RANGE && node->pipe->variables[1] != NULL)
        return go_fail(s, begin, "only range has two variables");
    leave_action(s);
    if (++s->depth > GO_DEPTH_MAX)
        return go_fail(s, begin, "blocks and parentheses are nested deeper than %d", GO_DEPTH_MAX);
    if (parse_list(s, &node->body, &ended) != ERR_OK)
        return s->e->code;
    if (ended == AT_ELSE) {
        go_skip_blanks(s);
        if (take_keyword(s, "if")) { /* its {{end}} is this one's, too */
            node->otherwise = go_new(s, sizeof(*node->otherwise));
            if (node->otherwise == NULL)
                return s->e->code;
            node->otherwise->kind = GO_IF;
            ended = AT_END;
            ERR_IGNORE(parse_block(s, node->otherwise, begin));
        } else if (expect_action_end(s) == ERR_OK) {
            ERR_IGNORE(parse_list(s, &node->otherwise, &ended));
        }
        if (s->e->code != ERR_OK)
            return s->e->code;
    }
    if (ended == AT_ELSE)
        return go_fail(s, s->p, "a second {{else}}");
    if (ended == AT_EOF)
        return go_fail(s, begin, "its {{end}} is missing");
    s->depth--;
    s->n_variables = scope;
    return ERR_OK;
}

static enum err_code add_node(struct go_parser *s, struct go_node ***at, struct go_node **ret)
{
    **at = *ret = go_new(s, sizeof(**ret));
    if (*ret == NULL)
        return s->e->code;
    *at = &(*ret)->next;
    return ERR_OK;
}

/* The text up to the next action; s->p is behind its "{{" then. False: to the end. */
static enum err_code parse_text(struct go_parser *s, struct go_node ***at, bool *ret_action)
{
    const char *open = memmem(s->p, (size_t)(s->end - s->p), "{{", 2), *end = open != NULL ? open : s->end;
    const bool trims =
        open != NULL && s->end - open > 3 && open[2] == '-' && strchr(" \t\r\n", open[3]) != NULL;
    const char *last = end;
    struct go_node *node;

    while (trims && last > s->p && strchr(" \t\r\n", last[-1]) != NULL && last[-1] != '\0')
        last--;
    if (last > s->p) {
        if (add_node(s, at, &node) != ERR_OK)
            return s->e->code;
        node->kind = GO_TEXT;
        node->text = (struct str){ s->p, (size_t)(last - s->p) };
    }
    *ret_action = open != NULL;
    s->p = open == NULL ? s->end : open + (trims ? 4 : 2);
    return ERR_OK;
}

static enum err_code skip_comment(struct go_parser *s, const char *begin)
{
    const char *close = memmem(s->p + 2, (size_t)(s->end - s->p - 2), "*/", 2);

    if (close == NULL)
        return go_fail(s, begin, "the comment has no end");
    s->p = close + 2;
    return expect_action_end(s);
}

/* An action that is no else and no end. */
static enum err_code parse_action(struct go_parser *s, struct go_node ***at, const char *begin)
{
    static const char *const refused[] = { "block", "break", "continue", "define", "template" };
    struct go_node *node;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (take_keyword(s, refused[i]))
            return go_fail(s, begin, "{{%s}} is not supported: there are if, else, range, with and end",
                           refused[i]);
    if (add_node(s, at, &node) != ERR_OK)
        return s->e->code;
    node->kind = take_keyword(s, "if")      ? GO_IF
                 : take_keyword(s, "with")  ? GO_WITH
                 : take_keyword(s, "range") ? GO_RANGE
                                            : GO_ACTION;
    if (node->kind != GO_ACTION)
        return parse_block(s, node, begin);
    if (go_parse_pipe(s, &node->pipe, "}}", true) != ERR_OK)
        return s->e->code;
    if (node->pipe->variables[1] != NULL)
        return go_fail(s, begin, "only range has two variables");
    leave_action(s);
    return ERR_OK;
}

static enum err_code parse_list(struct go_parser *s, struct go_node **ret, enum ended *ended)
{
    struct go_node **at = ret;
    const char *begin;
    bool action;

    for (;;) {
        if (parse_text(s, &at, &action) != ERR_OK)
            return s->e->code;
        *ended = AT_EOF;
        if (!action)
            return ERR_OK;
        begin = s->p;
        go_skip_blanks(s);
        if (go_is_next(s, "/*")) {
            if (skip_comment(s, begin) != ERR_OK)
                return s->e->code;
            continue;
        }
        *ended = AT_ELSE;
        if (take_keyword(s, "else"))
            return ERR_OK;
        *ended = AT_END;
        if (take_keyword(s, "end"))
            return expect_action_end(s);
        if (parse_action(s, &at, begin) != ERR_OK)
            return s->e->code;
    }
}

enum err_code go_parse(struct go_template *t, const char *text, size_t n, struct err *e)
{
    struct go_parser s = { .t = t, .start = text, .p = text, .end = text + n, .e = e };
    enum ended ended = AT_EOF;

    *t = (struct go_template){ .literals = json_array() };
    if (n > TEMPLATE_MAX)
        return err_set(e, ERR_INVALID, "go-template: more than %d bytes", TEMPLATE_MAX);
    if (parse_list(&s, &t->nodes, &ended) != ERR_OK)
        return e->code;
    return ended == AT_EOF
               ? ERR_OK
               : go_fail(&s, s.p, "{{%s}} without a block before it", ended == AT_END ? "end" : "else");
}

void go_template_done(struct go_template *t)
{
    arena_done(&t->arena);
    json_decref(t->literals);
}
