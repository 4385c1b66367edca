/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of Go templates (text/template/funcs.go), and the two that kubectl adds. */
#include "agent/cli/template/internal.h"

#include "base/codec/base64.h"
#include "base/codec/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

const char *go_type_name(const json_t *v)
{
    if (v == NULL)
        return "nil";
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "map[string]interface {}";
    case JSON_ARRAY:
        return "[]interface {}";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "int64";
    case JSON_REAL:
        return "float64";
    case JSON_TRUE:
    case JSON_FALSE:
        return "bool";
    case JSON_NULL:
        break;
    }
    return "nil";
}

bool go_is_true(const json_t *v)
{
    if (json_is_string(v))
        return json_string_length(v) > 0;
    if (json_is_number(v))
        return json_number_value(v) < 0 || json_number_value(v) > 0;
    return json_is_true(v) || json_array_size(v) + json_object_size(v) > 0;
}

/* The shortest text that reads as the same number; without an exponent from 1e-4 to below 1e21. */
static void add_real(struct buf *out, double v)
{
    char text[64];
    int digits = 0, exponent;

    do
        snprintf(text, sizeof(text), "%.*e", digits, v);
    while (strtod(text, NULL) - v != 0 && ++digits < 17);
    exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -4 || exponent >= 21)
        buf_adds(out, text);
    else
        buf_addf(out, "%.*f", digits > exponent ? digits - exponent : 0, v);
}

void cli_add_go_value(struct buf *out, const json_t *v)
{
    mem_auto const char **keys = json_is_object(v) ? json_sorted_keys(v) : NULL;
    const json_t *item;
    size_t i;

    if (json_is_string(v)) {
        buf_add(out, json_string_value(v), json_string_length(v));
    } else if (json_is_integer(v)) {
        buf_addf(out, "%lld", (long long)json_integer_value(v));
    } else if (json_is_real(v)) {
        add_real(out, json_real_value(v));
    } else if (json_is_boolean(v)) {
        buf_adds(out, json_is_true(v) ? "true" : "false");
    } else if (json_is_array(v)) {
        buf_addc(out, '[');
        json_array_foreach (v, i, item) {
            if (i > 0)
                buf_addc(out, ' ');
            cli_add_go_value(out, item);
        }
        buf_addc(out, ']');
    } else if (json_is_object(v)) {
        buf_adds(out, "map[");
        for (i = 0; keys != NULL && keys[i] != NULL; i++) {
            buf_addf(out, "%s%s:", i > 0 ? " " : "", keys[i]);
            cli_add_go_value(out, json_object_get(v, keys[i]));
        }
        buf_addc(out, ']');
    } else {
        buf_adds(out, "<nil>");
    }
}

/* ---- and, or, not, comparisons ---- */

static enum err_code call_and(const struct go_call *c, json_t **ret, struct err *e)
{
    size_t i = 0;

    (void)e;
    while (i + 1 < c->n && go_is_true(c->args[i]))
        i++;
    *ret = json_incref(c->args[i]);
    return ERR_OK;
}

static enum err_code call_or(const struct go_call *c, json_t **ret, struct err *e)
{
    size_t i = 0;

    (void)e;
    while (i + 1 < c->n && !go_is_true(c->args[i]))
        i++;
    *ret = json_incref(c->args[i]);
    return ERR_OK;
}

static enum err_code call_not(const struct go_call *c, json_t **ret, struct err *e)
{
    (void)e;
    *ret = json_boolean(!go_is_true(c->args[0]));
    return ERR_OK;
}

static bool is_nothing(const json_t *v)
{
    return v == NULL || json_is_null(v);
}

/* -1, 0, 1; 2: they differ and have no order. ERR_INVALID: they cannot be compared. */
static enum err_code order(const struct go_call *c, const json_t *a, const json_t *b, int *ret, struct err *e)
{
    *ret = 2;
    if (is_nothing(a) || is_nothing(b)) {
        *ret = is_nothing(a) && is_nothing(b) ? 0 : 2;
    } else if (json_is_string(a) && json_is_string(b)) {
        *ret = strcmp(json_string_value(a), json_string_value(b));
    } else if (json_is_integer(a) && json_is_integer(b)) {
        *ret =
            (json_integer_value(a) > json_integer_value(b)) - (json_integer_value(a) < json_integer_value(b));
    } else if (json_is_number(a) && json_is_number(b)) {
        *ret = (json_number_value(a) > json_number_value(b)) - (json_number_value(a) < json_number_value(b));
    } else if (json_is_boolean(a) && json_is_boolean(b)) {
        *ret = json_is_true(a) == json_is_true(b) ? 0 : 2;
    } else {
        return go_error(e, c->place, "%s and %s cannot be compared", go_type_name(a), go_type_name(b));
    }
    return ERR_OK;
}

static enum err_code call_eq(const struct go_call *c, json_t **ret, struct err *e)
{
    int how = 2;

    for (size_t i = 1; i < c->n && how != 0; i++)
        if (order(c, c->args[0], c->args[i], &how, e) != ERR_OK)
            return e->code;
    *ret = json_boolean(how == 0);
    return ERR_OK;
}

static enum err_code call_ne(const struct go_call *c, json_t **ret, struct err *e)
{
    int how = 2;

    if (order(c, c->args[0], c->args[1], &how, e) != ERR_OK)
        return e->code;
    *ret = json_boolean(how != 0);
    return ERR_OK;
}

static enum err_code ordered(const struct go_call *c, int *ret, struct err *e)
{
    const json_t *a = c->args[0], *b = c->args[1];

    if (!(json_is_number(a) && json_is_number(b)) && !(json_is_string(a) && json_is_string(b)))
        return go_error(e, c->place, "%s and %s have no order", go_type_name(a), go_type_name(b));
    return order(c, a, b, ret, e);
}

#define ORDERED(name, test)                                                                                  \
    static enum err_code name(const struct go_call *c, json_t **ret, struct err *e)                          \
    {                                                                                                        \
        int how = 2;                                                                                         \
                                                                                                             \
        if (ordered(c, &how, e) != ERR_OK)                                                                   \
            return e->code;                                                                                  \
        *ret = json_boolean(how test 0);                                                                     \
        return ERR_OK;                                                                                       \
    }
ORDERED(call_lt, <)
ORDERED(call_le, <=)
ORDERED(call_gt, >)
ORDERED(call_ge, >=)

/* ---- len, index, exists ---- */

static enum err_code call_len(const struct go_call *c, json_t **ret, struct err *e)
{
    const json_t *v = c->args[0];

    if (!json_is_string(v) && !json_is_array(v) && !json_is_object(v))
        return go_error(e, c->place, "len of a value of type %s", go_type_name(v));
    *ret = json_integer(
        (json_int_t)(json_is_string(v) ? json_string_length(v) : json_array_size(v) + json_object_size(v)));
    return ERR_OK;
}

static enum err_code call_index(const struct go_call *c, json_t **ret, struct err *e)
{
    json_t *v = c->args[0];

    for (size_t i = 1; i < c->n; i++) {
        const json_t *at = c->args[i];

        if (json_is_object(v) && json_is_string(at)) {
            v = json_object_get(v, json_string_value(at));
        } else if (!json_is_array(v) || !json_is_integer(at)) {
            return go_error(e, c->place, "index %s of a value of type %s", go_type_name(at), go_type_name(v));
        } else if (json_integer_value(at) < 0 || (uint64_t)json_integer_value(at) >= json_array_size(v)) {
            return go_error(e, c->place, "index %lld is out of range: there are %zu",
                            (long long)json_integer_value(at), json_array_size(v));
        } else {
            v = json_array_get(v, (size_t)json_integer_value(at));
        }
    }
    *ret = json_incref(v);
    return ERR_OK;
}

/* kubectl's: like index, but returns whether the value exists. */
static enum err_code call_exists(const struct go_call *c, json_t **ret, struct err *e)
{
    const json_t *v = c->args[0];

    (void)e;
    for (size_t i = 1; i < c->n; i++)
        v = json_is_string(c->args[i]) ? json_object_get(v, json_string_value(c->args[i]))
            : json_is_integer(c->args[i]) && json_integer_value(c->args[i]) >= 0
                ? json_array_get(v, (size_t)json_integer_value(c->args[i]))
                : NULL;
    *ret = json_boolean(v != NULL);
    return ERR_OK;
}

/* ---- texts ---- */

/* fmt.Sprint: a blank between two operands that are no strings. */
static enum err_code call_print(const struct go_call *c, json_t **ret, struct err *e)
{
    buf_auto out = BUF_INIT(TEMPLATE_MAX * 64);

    for (size_t i = 0; i < c->n; i++) {
        if (i > 0 && !json_is_string(c->args[i]) && !json_is_string(c->args[i - 1]))
            buf_addc(&out, ' ');
        cli_add_go_value(&out, c->args[i]);
    }
    *ret = json_string_of(out.p);
    return buf_check(&out, e);
}

static enum err_code call_println(const struct go_call *c, json_t **ret, struct err *e)
{
    buf_auto out = BUF_INIT(TEMPLATE_MAX * 64);

    for (size_t i = 0; i < c->n; i++) {
        if (i > 0)
            buf_addc(&out, ' ');
        cli_add_go_value(&out, c->args[i]);
    }
    buf_addc(&out, '\n');
    *ret = json_string_of(out.p);
    return buf_check(&out, e);
}

static enum err_code call_printf(const struct go_call *c, json_t **ret, struct err *e)
{
    *ret = go_printf(c, e);
    return e->code;
}

static enum err_code call_base64decode(const struct go_call *c, json_t **ret, struct err *e)
{
    const json_t *v = c->args[0];
    mem_auto unsigned char *bytes = malloc(BASE64_DECODED_MAX(json_string_length(v)) + 1);
    size_t n;

    if (bytes == NULL)
        return err_nomem(e);
    if (!json_is_string(v) || !base64_decode(json_string_value(v), json_string_length(v), bytes, &n))
        return go_error(e, c->place, "base64decode: not base64");
    bytes[n] = '\0';
    *ret = json_string_of((const char *)bytes);
    return ERR_OK;
}

/* ---- the table ---- */

static const struct function {
    const char *name;
    size_t min, max;
    enum err_code (*call)(const struct go_call *c, json_t **ret, struct err *e);
} functions[] = {
    { "and", 1, GO_ARGUMENTS_MAX, call_and },
    { "base64decode", 1, 1, call_base64decode },
    { "eq", 2, GO_ARGUMENTS_MAX, call_eq },
    { "exists", 1, GO_ARGUMENTS_MAX, call_exists },
    { "ge", 2, 2, call_ge },
    { "gt", 2, 2, call_gt },
    { "index", 1, GO_ARGUMENTS_MAX, call_index },
    { "le", 2, 2, call_le },
    { "len", 1, 1, call_len },
    { "lt", 2, 2, call_lt },
    { "ne", 2, 2, call_ne },
    { "not", 1, 1, call_not },
    { "or", 1, GO_ARGUMENTS_MAX, call_or },
    { "print", 0, GO_ARGUMENTS_MAX, call_print },
    { "printf", 1, GO_ARGUMENTS_MAX, call_printf },
    { "println", 0, GO_ARGUMENTS_MAX, call_println },
};

static const struct function *function_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

bool go_is_function(const char *name)
{
    return function_of(name) != NULL;
}

enum err_code go_call(const char *name, const struct go_call *c, json_t **ret, struct err *e)
{
    const struct function *f = function_of(name);

    if (f == NULL)
        return go_error(e, c->place, "function \"%.64s\" not defined", name);
    if (c->n < f->min || c->n > f->max)
        return go_error(e, c->place, "%s with %zu arguments: %zu%s expected", name, c->n, f->min,
                        f->max > f->min ? " or more are"
                        : f->min == 1   ? " is"
                                        : " are");
    return f->call(c, ret, e);
}
