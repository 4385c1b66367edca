/* SPDX-License-Identifier: Apache-2.0 */
/* Checks one value against its row's type. */
#include "agent/api/quantity.h"
#include "agent/config/internal.h"
#include "base/duration.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096 /* bytes of one text: paths are the longest */
#define PATH_TEXT_MAX 200
#define ENTRIES_MAX 1000 /* of one list or mapping */

bool config_is_ip(const char *text)
{
    struct in6_addr a;

    return inet_pton(AF_INET, text, &a) == 1 || inet_pton(AF_INET6, text, &a) == 1;
}

bool config_is_zero(const json_t *v)
{
    int64_t ns;

    if (v == NULL)
        return true;
    switch (json_typeof(v)) {
    case JSON_FALSE:
    case JSON_NULL:
        return true;
    case JSON_INTEGER:
        return json_integer_value(v) == 0;
    case JSON_REAL:
        return json_real_value(v) == 0;
    case JSON_STRING:
        return json_string_length(v) == 0 || (duration_parse(json_string_value(v), &ns) && ns == 0);
    case JSON_OBJECT:
        return json_object_size(v) == 0;
    case JSON_ARRAY:
        return json_array_size(v) == 0;
    case JSON_TRUE:
        break;
    }
    return false;
}

bool config_means_default(const struct config_row *r, const json_t *v)
{
    if ((r->marks & ZERO) == 0)
        return false;
    return r->type == T_TEXT && json_is_string(v) ? json_string_length(v) == 0 : config_is_zero(v);
}

enum err_code config_value_take(json_t *v, json_t **ret, struct err *e)
{
    if (v == NULL)
        return err_nomem(e);
    *ret = v;
    return ERR_OK;
}

/* "is \"many\", which is not a whole number" */
static enum err_code wrong(const json_t *v, const char *what, struct err *e)
{
    mem_auto char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

    return err_set(e, ERR_INVALID, "%.120s is %s", text != NULL ? text : "this", what);
}

static enum err_code check_text(const json_t *v, struct err *e)
{
    if (!json_is_string(v))
        return wrong(v, "not a string (numbers and words like \"yes\" need quotes)", e);
    if (json_string_length(v) > TEXT_MAX)
        return err_set(e, ERR_INVALID, "longer than %d bytes", TEXT_MAX);
    for (const char *c = json_string_value(v); *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return wrong(v, "not valid for a setting: it contains a control character", e);
    return ERR_OK;
}

static enum err_code check_int(const struct config_row *r, const json_t *v, struct err *e)
{
    json_int_t n = json_integer_value(v);
    const char *dots = r->allowed != NULL ? strstr(r->allowed, "..") : NULL; /* NULL: flag only, any number */

    if (!json_is_integer(v))
        return wrong(v, "not a whole number", e);
    if (dots != NULL && (n < strtoll(r->allowed, NULL, 10) || n > strtoll(dots + 2, NULL, 10)))
        return err_set(e, ERR_INVALID, "%lld is not between %.*s and %s", (long long)n,
                       (int)(dots - r->allowed), r->allowed, dots + 2);
    return ERR_OK;
}

static enum err_code check_word(const struct config_row *r, const json_t *v, struct err *e)
{
    const char *text = json_string_value(v);
    size_t n = strlen(text);
    buf_auto list = BUF_INIT(400);

    for (const char *p = r->allowed, *bar; p != NULL; p = bar != NULL ? bar + 1 : NULL) {
        size_t length;
        bar = strchr(p, '|');
        length = bar != NULL ? (size_t)(bar - p) : strlen(p);
        if (length == n && memcmp(p, text, n) == 0)
            return ERR_OK;
        buf_addf(&list, "%s%.*s", list.n > 0 ? ", " : "", (int)length, p);
    }
    return err_set(e, ERR_INVALID, "\"%.100s\" is not one of %s", text, list.p);
}

static enum err_code check_path(const json_t *v, json_t **ret, struct err *e)
{
    const char *text = json_string_value(v);
    size_t n = strlen(text);

    if (n > 0 &&
        (text[0] != '/' || strstr(text, "/../") != NULL || str_ends(text, "/..") || n > PATH_TEXT_MAX))
        return err_set(e, ERR_INVALID,
                       "\"%.220s\" is not an absolute path of at most %d bytes without \"..\"", text,
                       PATH_TEXT_MAX);
    while (n > 1 && text[n - 1] == '/')
        n--;
    return config_value_take(json_stringn(text, n), ret, e);
}

static enum err_code check_duration(const struct config_row *r, const json_t *v, json_t **ret, struct err *e)
{
    int64_t ns =
        json_integer_value(v); /* a bare number is in nanoseconds, which only logging.flushFrequency allows */

    if (json_is_string(v) ? !duration_parse(json_string_value(v), &ns) : !json_is_integer(v) || ns != 0)
        return wrong(v, "not a duration like \"300ms\", \"10s\" or \"1h30m\"", e);
    if (ns < 0 && !(r->marks & NEGATIVE))
        return wrong(v, "negative", e);
    return config_value_take(json_string(duration_format(ns).s), ret, e);
}

int64_t config_duration_ns(const json_t *value)
{
    int64_t ns = 0;

    return json_is_string(value) && duration_parse(json_string_value(value), &ns) ? ns : 0;
}

static enum err_code check_quantity(const json_t *v, json_t **ret, struct err *e)
{
    struct quantity q;
    char text[QUANTITY_TEXT_SIZE];

    if (json_is_integer(v)) {
        q = quantity_from_int(json_integer_value(v), QUANTITY_DECIMAL_SI);
    } else {
        if (check_text(v, e) != ERR_OK)
            return e->code;
        if (json_string_length(v) == 0)
            return config_value_take(json_string(""), ret, e);
        if (quantity_parse(json_string_value(v), &q, e) != ERR_OK)
            return e->code;
    }
    if (q.nano < 0)
        return wrong(v, "negative", e);
    quantity_format(&q, text);
    return config_value_take(json_string(text), ret, e);
}

static enum err_code check_entries(const struct config_row *r, const json_t *v, bool list, struct err *e)
{
    if (list ? !json_is_array(v) : !json_is_object(v))
        return wrong(v, list ? "not a list" : "not a mapping", e);
    if ((list ? json_array_size(v) : json_object_size(v)) > ENTRIES_MAX)
        return err_set(e, ERR_INVALID, "more than %d values", ENTRIES_MAX);
    if (r->type == T_TEXTS && r->effect == WORKS && r->offset != 0 && json_array_size(v) > CONFIG_LIST_MAX)
        return err_set(e, ERR_INVALID, "more than %d values", CONFIG_LIST_MAX);
    return ERR_OK;
}

static enum err_code check_list(const struct config_row *r, const json_t *v, struct err *e)
{
    json_t *item;
    size_t i;

    if (check_entries(r, v, true, e) != ERR_OK)
        return e->code;
    json_array_foreach (v, i, item) {
        if (r->type == T_INTS ? !json_is_integer(item) : r->type == T_OBJECTS ? !json_is_object(item) : false)
            return wrong(item, r->type == T_INTS ? "not a whole number" : "not a mapping", e);
        if (r->type == T_TEXTS && check_text(item, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code check_map(const struct config_row *r, const json_t *v, struct err *e)
{
    const char *key;
    json_t *item, *text;
    size_t i;

    if (check_entries(r, v, false, e) != ERR_OK)
        return e->code;
    json_object_foreach ((json_t *)v, key, item) {
        if (json_is_null(item)) /* removes the key */
            continue;
        if (r->type == T_BOOL_MAP && !json_is_boolean(item)) {
            wrong(item, "neither true nor false", e);
            return err_wrap(e, "%.100s", key);
        }
        if (r->type == T_TEXT_MAP && check_text(item, e) != ERR_OK)
            return err_wrap(e, "%.100s", key);
        if (r->type == T_TEXTS_MAP) {
            if (!json_is_array(item))
                return err_set(e, ERR_INVALID, "%.100s: not a list", key);
            json_array_foreach (item, i, text)
                if (!json_is_string(text))
                    return err_set(e, ERR_INVALID, "%.100s: has an entry that is not a string", key);
        }
    }
    return ERR_OK;
}

static enum err_code config_value_check_type(const struct config_row *r, const json_t *v, json_t **ret,
                                             struct err *e)
{
    switch (r->type) {
    case T_BOOL:
        if (!json_is_boolean(v))
            return wrong(v, "neither true nor false", e);
        break;
    case T_INT:
        if (check_int(r, v, e) != ERR_OK)
            return e->code;
        break;
    case T_FLOAT:
        if (!json_is_number(v) || !(json_number_value(v) > 0) || json_number_value(v) > 1)
            return wrong(v, "not a number above 0 and up to 1", e);
        break;
    case T_TEXT:
    case T_WORD:
    case T_PATH:
    case T_IP:
        if (check_text(v, e) != ERR_OK)
            return e->code;
        if (r->type == T_PATH)
            return check_path(v, ret, e);
        if (json_string_length(v) == 0 && r->type != T_TEXT) /* ZERO: the default */
            break;
        if (r->type == T_WORD && check_word(r, v, e) != ERR_OK)
            return e->code;
        if (r->type == T_IP && !config_is_ip(json_string_value(v)))
            return wrong(v, "not an IP address", e);
        break;
    case T_DURATION:
        return check_duration(r, v, ret, e);
    case T_QUANTITY:
        return check_quantity(v, ret, e);
    case T_TEXTS:
    case T_INTS:
    case T_OBJECTS:
        if (check_list(r, v, e) != ERR_OK)
            return e->code;
        break;
    case T_TEXT_MAP:
    case T_BOOL_MAP:
    case T_TEXTS_MAP:
        if (check_map(r, v, e) != ERR_OK)
            return e->code;
        break;
    case T_COUNT_MAP:
        return check_entries(r, v, false, e) == ERR_OK ? config_check_counts(v, ret, e) : e->code;
    }
    return config_value_take(json_deep_copy(v), ret, e);
}

enum err_code config_check_value(const struct config_row *r, const json_t *v, json_t **ret, struct err *e)
{
    json_auto_t *checked = NULL;

    if (config_value_check_type(r, v, &checked, e) != ERR_OK)
        return e->code;
    if (r->check != NULL && !config_is_zero(checked) && r->check(checked, e) != ERR_OK)
        return e->code;
    *ret = json_incref(checked);
    return ERR_OK;
}
