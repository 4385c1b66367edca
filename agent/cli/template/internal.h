/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal - a Go template as a tree: go_parse.c and go_pipe.c make it, go_run.c prints it, go_calls.c and
 * go_printf.c are its functions. Nodes and texts are in one arena; literals are held by a list.
 */
#ifndef AGENT_CLI_TEMPLATE_INTERNAL_H
#define AGENT_CLI_TEMPLATE_INTERNAL_H
#include "agent/cli/template/template.h"
#include "base/arena.h"
#include "base/scope.h"

#include <stdbool.h>

enum {
    GO_DEPTH_MAX = 64, /* of blocks and parentheses */
    GO_VARIABLES_MAX = 64,
    GO_ARGUMENTS_MAX = 64,
    GO_WIDTH_MAX = 1000 /* of printf */
};

struct go_place {
    unsigned line, column; /* from 1; bytes */
};

struct go_field { /* ".a.b" */
    const char *name;
    const struct go_field *next;
};

struct go_pipe;
struct go_operand {
    enum { GO_DOT, GO_VARIABLE, GO_LITERAL, GO_NIL, GO_FUNCTION, GO_PIPE } kind;
    const char *name;              /* of a variable, with "$", or of a function */
    json_t *literal;               /* borrowed */
    const struct go_pipe *pipe;    /* in parentheses */
    const struct go_field *fields; /* of the value */
    struct go_place place;
    struct go_operand *next; /* the command's next argument */
};

struct go_command {
    struct go_operand *operands;
    struct go_command *next;
};

struct go_pipe {
    const char *variables[2]; /* NULL: none */
    bool assigns;             /* "=", not ":=" */
    struct go_command *commands;
    struct go_place place;
};

struct go_node {
    enum { GO_TEXT, GO_ACTION, GO_IF, GO_WITH, GO_RANGE } kind;
    struct str text;
    struct go_pipe *pipe;
    struct go_node *body, *otherwise;
    struct go_node *next;
};

struct go_template {
    struct arena arena;
    json_t *literals;
    struct go_node *nodes;
};
enum err_code go_parse(struct go_template *t, const char *text, size_t n, struct err *e) MUST_CHECK;
void go_template_done(struct go_template *t);
/* "go-template: line 1 column 7: ..." */
enum err_code go_error(struct err *e, struct go_place at, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- go_pipe.c: the actions between the braces ---- */
struct go_parser {
    struct go_template *t;
    const char *start, *p, *end;
    struct err *e;
    unsigned depth;
    const char *variables[GO_VARIABLES_MAX]; /* in scope */
    size_t n_variables;
};
struct go_place go_place_of(const struct go_parser *s, const char *at);
#define go_fail(s, at, ...) go_error((s)->e, go_place_of(s, at), __VA_ARGS__)
void *go_new(struct go_parser *s, size_t n); /* zeroed, in the arena; NULL: *s->e has the reason */
void go_skip_blanks(struct go_parser *s);
bool go_is_next(const struct go_parser *s, const char *what);
bool go_is_action_end(const struct go_parser *s); /* "}}", or "-}}" after blanks */
size_t go_name_length(const char *p, const char *end);
/* Up to `stop`, where s->p is then. */
enum err_code go_parse_pipe(struct go_parser *s, struct go_pipe **ret, const char *stop,
                            bool declares) MUST_CHECK;

/* ---- go_calls.c ---- */
/* NULL means no value, like null. *ret is a new reference, or NULL. */
struct go_call {
    struct go_place place;
    json_t *const *args; /* borrowed */
    size_t n;
};
bool go_is_function(const char *name);
enum err_code go_call(const char *name, const struct go_call *c, json_t **ret, struct err *e) MUST_CHECK;
bool go_is_true(const json_t *v);
const char *go_type_name(const json_t *v); /* "int64" */

/* ---- go_printf.c ---- */
json_t *go_printf(const struct go_call *c, struct err *e);
#endif
