/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of a Go template, between its braces: words, literals, operands, pipelines. */
#include "agent/cli/template/internal.h"

#include "base/codec/json.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum err_code go_error(struct err *e, struct go_place at, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(e, ERR_INVALID, "go-template: line %u column %u: %s", at.line, at.column, text);
}

struct go_place go_place_of(const struct go_parser *s, const char *at)
{
    struct go_place ret = { 1, 1 };

    for (const char *p = s->start; p < at; p++) {
        ret.column = *p == '\n' ? 1 : ret.column + 1;
        ret.line += *p == '\n';
    }
    return ret;
}

void *go_new(struct go_parser *s, size_t n)
{
    void *ret = arena_alloc(&s->t->arena, n);

    if (ret == NULL)
        err_nomem(s->e);
    return ret;
}

/* ---- words ---- */

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80) != 0;
}

void go_skip_blanks(struct go_parser *s)
{
    while (s->p < s->end && strchr(" \t\r\n", *s->p) != NULL && *s->p != '\0')
        s->p++;
}

bool go_is_next(const struct go_parser *s, const char *what)
{
    const size_t n = strlen(what);

    return (size_t)(s->end - s->p) >= n && memcmp(s->p, what, n) == 0;
}

/* "}}", or " -}}" after blanks */
bool go_is_action_end(const struct go_parser *s)
{
    return go_is_next(s, "}}") ||
           (go_is_next(s, "-}}") && s->p > s->start && strchr(" \t\r\n", s->p[-1]) != NULL);
}

size_t go_name_length(const char *p, const char *end)
{
    size_t n = 0;

    while (p + n < end && is_name_byte(p[n]))
        n++;
    return n;
}

static const char *take_text(struct go_parser *s, size_t n)
{
    const char *ret = arena_strndup(&s->t->arena, s->p, n);

    if (ret == NULL)
        err_nomem(s->e);
    s->p += n;
    return ret;
}

/* ---- literals ---- */

static enum err_code hold(struct go_parser *s, struct go_operand *o, json_t *value)
{
    o->kind = GO_LITERAL;
    o->literal = value;
    return value == NULL || json_array_append_new(s->t->literals, value) != 0 ? err_nomem(s->e) : ERR_OK;
}

static bool add_escape(struct go_parser *s, struct buf *out)
{
    static const char from[] = "abfnrtv\\\"'", to[] = "\a\b\f\n\r\t\v\\\"'";
    const char *known = s->p < s->end && *s->p != '\0' ? strchr(from, *s->p) : NULL;
    char digits[3] = { 0 };

    if (known != NULL) {
        buf_addc(out, to[known - from]);
        s->p++;
        return true;
    }
    if (s->end - s->p < 3 || *s->p != 'x' || !isxdigit((unsigned char)s->p[1]) ||
        !isxdigit((unsigned char)s->p[2]))
        return false;
    memcpy(digits, s->p + 1, 2);
    buf_addc(out, (char)strtol(digits, NULL, 16));
    s->p += 3;
    return true;
}

/* "text", `text`, 'c': the last is a number. */
static enum err_code take_quoted(struct go_parser *s, struct go_operand *o)
{
    const char quote = *s->p, *begin = s->p++;
    buf_auto out = BUF_INIT(TEMPLATE_MAX);

    while (s->p < s->end && *s->p != quote) {
        if (quote != '`' && *s->p == '\n')
            return go_fail(s, begin, "a string ends on its line");
        if (quote != '`' && *s->p == '\\') {
            s->p++;
            if (!add_escape(s, &out))
                return go_fail(s, s->p - 1, "an escape is one of \\n \\t \\r \\\\ \\\" \\' \\xHH");
        } else {
            buf_addc(&out, *s->p++);
        }
    }
    if (s->p == s->end)
        return go_fail(s, begin, "the string has no end");
    s->p++;
    if (quote == '\'' && out.n != 1)
        return go_fail(s, begin, "one character of ASCII is expected in '...'");
    return hold(s, o, quote == '\'' ? json_integer((unsigned char)out.p[0]) : json_string_of(out.p));
}

static enum err_code take_number(struct go_parser *s, struct go_operand *o)
{
    const char *begin = s->p;
    char text[64], *end;
    json_int_t whole;
    double number;
    size_t n = 0;

    if (*s->p == '-' || *s->p == '+')
        n++;
    while (s->p + n < s->end &&
           (is_name_byte(s->p[n]) || s->p[n] == '.' ||
            ((s->p[n] == '-' || s->p[n] == '+') && (s->p[n - 1] | 0x20) == 'e' && s->p[1] != 'x')))
        n++;
    if (n >= sizeof(text))
        return go_fail(s, begin, "the number is too long");
    memcpy(text, s->p, n);
    text[n] = '\0';
    s->p += n;
    errno = 0;
    whole = strtoll(text, &end, 0);
    if (*end == '\0' && errno == 0)
        return hold(s, o, json_integer(whole));
    number = strtod(text, &end);
    if (*end != '\0' || number - number != 0) /* not finite */
        return go_fail(s, begin, "\"%s\" is no number", text);
    return hold(s, o, json_real(number));
}

/* ---- operands ---- */

/* ".a.b" behind an operand */
static enum err_code take_fields(struct go_parser *s, const struct go_field **ret)
{
    while (s->p < s->end && *s->p == '.') {
        const size_t n = go_name_length(s->p + 1, s->end);
        struct go_field *f;

        if (n == 0)
            return go_fail(s, s->p, "a name is expected after the dot");
        f = go_new(s, sizeof(*f));
        if (f == NULL)
            return s->e->code;
        s->p++;
        f->name = take_text(s, n);
        *ret = f;
        ret = &f->next;
    }
    return s->e->code;
}

static bool is_variable(const struct go_parser *s, const char *name)
{
    for (size_t i = 0; i < s->n_variables; i++)
        if (strcmp(s->variables[i], name) == 0)
            return true;
    return strcmp(name, "$") == 0;
}

static enum err_code take_variable(struct go_parser *s, const char **ret, bool known)
{
    const char *begin = s->p;

    *ret = take_text(s, 1 + go_name_length(s->p + 1, s->end));
    if (*ret != NULL && known && !is_variable(s, *ret))
        return go_fail(s, begin, "undefined variable \"%s\"", *ret);
    return s->e->code;
}

static enum err_code take_word(struct go_parser *s, struct go_operand *o)
{
    const char *begin = s->p;

    o->name = take_text(s, go_name_length(s->p, s->end));
    if (o->name == NULL)
        return s->e->code;
    if (strcmp(o->name, "true") == 0 || strcmp(o->name, "false") == 0)
        return hold(s, o, json_boolean(o->name[0] == 't'));
    o->kind = strcmp(o->name, "nil") == 0 ? GO_NIL : GO_FUNCTION;
    if (o->kind == GO_FUNCTION && !go_is_function(o->name))
        return go_fail(
            s, begin,
            "function \"%.64s\" not defined: there are and, base64decode, eq, exists, ge, gt, index, le, "
            "len, lt, ne, not, or, print, printf and println",
            o->name);
    return ERR_OK;
}

static enum err_code take_operand(struct go_parser *s, struct go_operand *o)
{
    const char c = *s->p, *begin = s->p;

    o->place = go_place_of(s, s->p);
    if (c == '"' || c == '`' || c == '\'')
        return take_quoted(s, o);
    if (isdigit((unsigned char)c) ||
        ((c == '-' || c == '+') && s->p + 1 < s->end && isdigit((unsigned char)s->p[1])))
        return take_number(s, o);
    if (c == '$') {
        o->kind = GO_VARIABLE;
        if (take_variable(s, &o->name, true) != ERR_OK)
            return s->e->code;
    } else if (c == '(') {
        o->kind = GO_PIPE;
        s->p++;
        if (go_parse_pipe(s, (struct go_pipe **)&o->pipe, ")", false) != ERR_OK)
            return s->e->code;
        s->p++;
    } else if (c == '.') {
        o->kind = GO_DOT;
        if (s->p + 1 == s->end || !is_name_byte(s->p[1])) {
            s->p++;
            return ERR_OK;
        }
    } else if (is_name_byte(c)) {
        return take_word(s, o);
    } else {
        return go_fail(s, begin, "unexpected \"%c\"", isprint((unsigned char)c) ? c : '?');
    }
    return take_fields(s, &o->fields);
}

/* ---- pipelines ---- */

static bool is_stop(const struct go_parser *s, const char *stop)
{
    return stop[0] == '}' ? go_is_action_end(s) : go_is_next(s, stop);
}

static enum err_code parse_command(struct go_parser *s, struct go_command *c, const char *stop)
{
    struct go_operand **at = &c->operands;
    size_t n = 0;

    for (;;) {
        go_skip_blanks(s);
        if (s->p == s->end)
            return go_fail(s, s->p, "%s is missing", stop[0] == '}' ? "}}" : "a )");
        if (is_stop(s, stop) || *s->p == '|')
            break;
        if (++n > GO_ARGUMENTS_MAX)
            return go_fail(s, s->p, "more than %d arguments", GO_ARGUMENTS_MAX);
        *at = go_new(s, sizeof(**at));
        if (*at == NULL || take_operand(s, *at) != ERR_OK)
            return s->e->code;
        if (s->p < s->end && strchr(" \t\r\n|)}", *s->p) == NULL)
            return go_fail(s, s->p, "unexpected \"%c\" after an operand",
                           isprint((unsigned char)*s->p) ? *s->p : '?');
        at = &(*at)->next;
    }
    if (c->operands == NULL)
        return go_fail(s, s->p, "a value is missing");
    if (c->operands->next != NULL && c->operands->kind != GO_FUNCTION)
        return go_error(s->e, c->operands->place, "a value that is no function has arguments");
    return ERR_OK;
}

/* "$x := ", "$i, $x := ", "$x = ": sets pipe->variables, or leaves s->p where it was. */
static enum err_code parse_declaration(struct go_parser *s, struct go_pipe *pipe)
{
    const char *begin = s->p, *names[2] = { NULL };
    size_t n = 0;

    while (n < 2 && s->p < s->end && *s->p == '$') {
        if (take_variable(s, &names[n++], false) != ERR_OK)
            return s->e->code;
        go_skip_blanks(s);
        if (n == 2 || !go_is_next(s, ","))
            break;
        s->p++;
        go_skip_blanks(s);
    }
    pipe->assigns = !go_is_next(s, ":=");
    if (n == 0 || (pipe->assigns && !go_is_next(s, "="))) {
        s->p = begin;
        return ERR_OK;
    }
    s->p += pipe->assigns ? 1 : 2;
    for (size_t i = 0; i < n; i++) {
        pipe->variables[i] = names[i];
        if (pipe->assigns && !is_variable(s, names[i]))
            return go_fail(s, begin, "undefined variable \"%s\"", names[i]);
        if (s->n_variables == GO_VARIABLES_MAX)
            return go_fail(s, begin, "more than %d variables", GO_VARIABLES_MAX);
    }
    return ERR_OK;
}

static void declare(struct go_parser *s, const struct go_pipe *pipe)
{
    for (size_t i = 0; i < 2 && pipe->variables[i] != NULL && !pipe->assigns; i++)
        if (s->n_variables < GO_VARIABLES_MAX)
            s->variables[s->n_variables++] = pipe->variables[i];
}

/* Stops before `stop`. */
enum err_code go_parse_pipe(struct go_parser *s, struct go_pipe **ret, const char *stop, bool declares)
{
    struct go_pipe *pipe = go_new(s, sizeof(*pipe));
    struct go_command **at;

    if (pipe == NULL)
        return s->e->code;
    *ret = pipe;
    pipe->place = go_place_of(s, s->p);
    if (++s->depth > GO_DEPTH_MAX)
        return go_fail(s, s->p, "blocks and parentheses are nested deeper than %d", GO_DEPTH_MAX);
    go_skip_blanks(s);
    if (declares && parse_declaration(s, pipe) != ERR_OK)
        return s->e->code;
    for (at = &pipe->commands;; at = &(*at)->next) {
        *at = go_new(s, sizeof(**at));
        if (*at == NULL || parse_command(s, *at, stop) != ERR_OK)
            return s->e->code;
        if (at != &pipe->commands && (*at)->operands->kind != GO_FUNCTION)
            return go_error(s->e, (*at)->operands->place, "a function is expected after |");
        if (*s->p != '|')
            break;
        s->p++;
    }
    if (declares)
        declare(s, pipe);
    s->depth--;
    return ERR_OK;
}
