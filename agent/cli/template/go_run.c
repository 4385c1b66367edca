/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a Go template for a value (text/template/exec.go). */
#include "agent/cli/template/internal.h"

#include "base/codec/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct variable {
    const char *name;
    json_t *value; /* a reference; may be NULL */
};

struct run {
    const json_t *root;
    struct buf *out;
    struct err *e;
    size_t steps;
    struct variable variables[GO_VARIABLES_MAX + 1]; /* with "$" */
    size_t n;
};

static enum err_code count(struct run *r, struct go_place at)
{
    if (++r->steps > GO_STEPS_MAX)
        return go_error(r->e, at, "more than %d steps", GO_STEPS_MAX);
    return r->out->failed ? buf_check(r->out, r->e) : ERR_OK;
}

/* ---- values ---- */

static enum err_code eval_pipe(struct run *r, const struct go_pipe *pipe, json_t *dot, json_t **ret);

static struct variable *variable_of(struct run *r, const char *name)
{
    for (size_t i = r->n; i > 0; i--)
        if (strcmp(r->variables[i - 1].name, name) == 0)
            return &r->variables[i - 1];
    return NULL;
}

static void push(struct run *r, const char *name, json_t *value)
{
    if (r->n < ARRAY_LEN(r->variables)) /* the parser has counted them */
        r->variables[r->n++] = (struct variable){ name, json_incref(value) };
}

static void pop_to(struct run *r, size_t n)
{
    while (r->n > n)
        json_decref(r->variables[--r->n].value);
}

/* Of *v, a reference, which is replaced by one of the field. Only null may have no fields. */
static enum err_code take_fields(struct run *r, const struct go_operand *o, json_t **v)
{
    for (const struct go_field *f = o->fields; f != NULL; f = f->next) {
        json_t *next = json_incref(json_object_get(*v, f->name));

        if (*v != NULL && !json_is_null(*v) && !json_is_object(*v))
            return go_error(r->e, o->place, "field %.64s of a value of type %s", f->name, go_type_name(*v));
        json_decref(*v);
        *v = next;
    }
    return ERR_OK;
}

/* *ret is a reference, also after an error. */
static enum err_code eval_operand(struct run *r, const struct go_operand *o, json_t *dot, json_t **ret)
{
    const struct go_call none = { .place = o->place };
    struct variable *variable;

    *ret = NULL;
    switch (o->kind) {
    case GO_DOT:
        *ret = json_incref(dot);
        break;
    case GO_VARIABLE:
        variable = variable_of(r, o->name);
        *ret = json_incref(variable != NULL ? variable->value : NULL);
        break;
    case GO_LITERAL:
        *ret = json_incref(o->literal);
        break;
    case GO_NIL:
        break;
    case GO_FUNCTION:
        return go_call(o->name, &none, ret, r->e);
    case GO_PIPE:
        if (eval_pipe(r, o->pipe, dot, ret) != ERR_OK)
            return r->e->code;
    }
    return take_fields(r, o, ret);
}

/* `last`: the result of the previous command in the pipeline; borrowed. */
static enum err_code eval_command(struct run *r, const struct go_command *c, json_t *dot, bool first,
                                  json_t *last, json_t **ret)
{
    json_t *args[GO_ARGUMENTS_MAX + 1];
    struct go_call call = { .place = c->operands->place, .args = args };
    size_t owned;

    *ret = NULL;
    if (count(r, c->operands->place) != ERR_OK)
        return r->e->code;
    if (c->operands->kind != GO_FUNCTION)
        return eval_operand(r, c->operands, dot, ret);
    for (const struct go_operand *o = c->operands->next; o != NULL && r->e->code == ERR_OK; o = o->next)
        ERR_IGNORE(eval_operand(r, o, dot, &args[call.n++]));
    owned = call.n;
    if (!first)
        args[call.n++] = last;
    if (r->e->code == ERR_OK)
        ERR_IGNORE(go_call(c->operands->name, &call, ret, r->e));
    for (size_t i = 0; i < owned; i++)
        json_decref(args[i]);
    return r->e->code;
}

static enum err_code eval_pipe(struct run *r, const struct go_pipe *pipe, json_t *dot, json_t **ret)
{
    *ret = NULL;
    for (const struct go_command *c = pipe->commands; c != NULL; c = c->next) {
        json_t *next;

        ERR_IGNORE(eval_command(r, c, dot, c == pipe->commands, *ret, &next));
        json_decref(*ret);
        *ret = next;
        if (r->e->code != ERR_OK)
            return r->e->code;
    }
    return ERR_OK;
}

/* A name of a pipeline gets the value. */
static void set_variable(struct run *r, const struct go_pipe *pipe, size_t which, json_t *value)
{
    struct variable *old = pipe->assigns ? variable_of(r, pipe->variables[which]) : NULL;

    if (!pipe->assigns) {
        push(r, pipe->variables[which], value);
    } else if (old != NULL) {
        json_decref(old->value);
        old->value = json_incref(value);
    }
}

/* ---- nodes ---- */

static enum err_code run_list(struct run *r, const struct go_node *node, json_t *dot);

static enum err_code run_turn(struct run *r, const struct go_node *node, json_t *key, json_t *value)
{
    const struct go_pipe *pipe = node->pipe;
    const size_t scope = r->n;

    if (count(r, pipe->place) != ERR_OK)
        return r->e->code;
    if (pipe->variables[1] != NULL)
        set_variable(r, pipe, 0, key);
    if (pipe->variables[0] != NULL)
        set_variable(r, pipe, pipe->variables[1] != NULL ? 1 : 0, value);
    ERR_IGNORE(run_list(r, node->body, value));
    pop_to(r, scope);
    return r->e->code;
}

static enum err_code run_range(struct run *r, const struct go_node *node, json_t *over, json_t *dot)
{
    mem_auto const char **keys = json_is_object(over) ? json_sorted_keys(over) : NULL;
    json_t *value;
    size_t i;

    if (over != NULL && !json_is_null(over) && !json_is_object(over) && !json_is_array(over))
        return go_error(r->e, node->pipe->place, "range cannot go over a value of type %s",
                        go_type_name(over));
    if (json_array_size(over) + json_object_size(over) == 0)
        return run_list(r, node->otherwise, dot);
    json_array_foreach (over, i, value) {
        json_auto_t *key = json_integer((json_int_t)i);

        if (run_turn(r, node, key, value) != ERR_OK)
            return r->e->code;
    }
    for (i = 0; keys != NULL && keys[i] != NULL; i++) {
        json_auto_t *key = json_string(keys[i]);

        if (run_turn(r, node, key, json_object_get(over, keys[i])) != ERR_OK)
            return r->e->code;
    }
    return ERR_OK;
}

static enum err_code run_block(struct run *r, const struct go_node *node, json_t *dot)
{
    json_auto_t *value = NULL;
    const size_t scope = r->n;

    if (eval_pipe(r, node->pipe, dot, &value) != ERR_OK)
        return r->e->code;
    if (node->kind == GO_RANGE)
        return run_range(r, node, value, dot);
    if (node->pipe->variables[0] != NULL)
        set_variable(r, node->pipe, 0, value);
    if (go_is_true(value))
        ERR_IGNORE(run_list(r, node->body, node->kind == GO_WITH ? value : dot));
    else
        ERR_IGNORE(run_list(r, node->otherwise, dot));
    pop_to(r, scope);
    return r->e->code;
}

static enum err_code run_action(struct run *r, const struct go_node *node, json_t *dot)
{
    json_auto_t *value = NULL;

    if (eval_pipe(r, node->pipe, dot, &value) != ERR_OK)
        return r->e->code;
    if (node->pipe->variables[0] != NULL)
        set_variable(r, node->pipe, 0, value);
    else if (value == NULL || json_is_null(value))
        buf_adds(r->out, "<no value>");
    else
        cli_add_go_value(r->out, value);
    return ERR_OK;
}

static enum err_code run_list(struct run *r, const struct go_node *node, json_t *dot)
{
    const size_t scope = r->n;

    for (; node != NULL && r->e->code == ERR_OK; node = node->next) {
        if (node->kind == GO_TEXT)
            buf_add(r->out, node->text.p, node->text.n);
        else if (node->kind == GO_ACTION)
            ERR_IGNORE(run_action(r, node, dot));
        else
            ERR_IGNORE(run_block(r, node, dot));
    }
    pop_to(r, scope);
    return r->e->code;
}

enum err_code cli_go_template(const char *text, const json_t *value, struct buf *out, struct err *e)
{
    struct run r = { .root = value, .out = out, .e = e };
    json_t *root = (json_t *)(uintptr_t)value;
    struct go_template t;

    if (go_parse(&t, text, strlen(text), e) == ERR_OK) {
        push(&r, "$", root);
        ERR_IGNORE(run_list(&r, t.nodes, root));
        pop_to(&r, 0);
    }
    go_template_done(&t);
    return e->code;
}

enum err_code cli_go_template_check(const char *text, struct err *e)
{
    struct go_template t;

    ERR_IGNORE(go_parse(&t, text, strlen(text), e));
    go_template_done(&t);
    return e->code;
}
