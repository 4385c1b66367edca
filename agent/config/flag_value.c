/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a flag as the value that a file would have. */
#include "agent/config/internal.h"
#include "base/codec/json.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

/* Like Go's strconv.ParseBool(). */
static bool flag_bool(const char *text, bool *ret)
{
    static const char *const yes[] = { "true", "1", "t", "T", "TRUE", "True" };
    static const char *const no[] = { "false", "0", "f", "F", "FALSE", "False" };

    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *ret = strcmp(text, yes[i]) == 0;
            return true;
        }
    return false;
}

static enum err_code flag_int(const char *text, json_t **ret, struct err *e)
{
    int64_t n;

    if (parse_i64(text[0] == '+' ? text + 1 : text, INT64_MIN, INT64_MAX, &n, "it", e) != ERR_OK)
        return err_set(e, ERR_INVALID, "\"%.100s\" is not a whole number", text);
    return config_value_take(json_integer(n), ret, e);
}

/* ---- lists and mappings ---- */

typedef enum err_code (*item_fn)(const struct config_row *r, char *item, json_t *into, struct err *e);

/* Adds each item of the text that is not empty to `into`, which is taken and becomes *ret. */
static enum err_code flag_items(const struct config_row *r, const char *text, const char *separator,
                                json_t *into, item_fn add, json_t **ret, struct err *e)
{
    json_auto_t *all = into;
    str_auto copy = strdup(text);
    char *rest = copy, *item;

    if (all == NULL || copy == NULL)
        return err_nomem(e);
    while ((item = strsep(&rest, separator)) != NULL)
        if (item[0] != '\0' && add(r, item, all, e) != ERR_OK)
            return e->code;
    *ret = json_incref(all);
    return ERR_OK;
}

static enum err_code add_to_list(const struct config_row *r, char *item, json_t *into, struct err *e)
{
    json_t *v = NULL;

    if (r->type != T_INTS)
        v = json_string(item);
    else if (flag_int(item, &v, e) != ERR_OK)
        return e->code;
    return json_array_append_new(into, v) == 0 ? ERR_OK : err_nomem(e);
}

/* "key=value"; the row may have another separator. */
static enum err_code add_to_map(const struct config_row *r, char *item, json_t *into, struct err *e)
{
    char separator = r->marks & BELOW ? '<' : r->marks & COLON ? ':' : '=';
    char *value = strchr(item, separator);
    bool on = false;

    if (value == NULL || value == item)
        return err_set(e, ERR_INVALID, "\"%.100s\" is not key%cvalue", item, separator);
    *value++ = '\0';
    if (r->type == T_TEXTS_MAP) {
        json_t *list = json_object_get(into, item);

        if (list == NULL && json_object_set_new(into, item, list = json_array()) != 0)
            return err_nomem(e);
        return json_array_append_new(list, json_string(value)) == 0 ? ERR_OK : err_nomem(e);
    }
    if (r->type == T_BOOL_MAP && !flag_bool(value, &on))
        return err_set(e, ERR_INVALID, "%.100s: \"%.100s\" is neither true nor false", item, value);
    return json_object_set_new(into, item, r->type == T_BOOL_MAP ? json_boolean(on) : json_string(value)) == 0
               ? ERR_OK
               : err_nomem(e);
}

/* "key=value:effect", "key:effect" */
static enum err_code add_taint(const struct config_row *r, char *item, json_t *into, struct err *e)
{
    char *effect = strrchr(item, ':'), *value;
    json_t *t;

    (void)r;
    if (effect == NULL)
        return err_set(e, ERR_INVALID, "\"%.100s\" is not key=value:effect", item);
    *effect++ = '\0';
    value = strchr(item, '=');
    if (value != NULL)
        *value++ = '\0';
    t = value != NULL ? json_pack("{s:s, s:s, s:s}", "key", item, "value", value, "effect", effect)
                      : json_pack("{s:s, s:s}", "key", item, "effect", effect);
    return json_array_append_new(into, t) == 0 ? ERR_OK : err_nomem(e);
}

/* "0:memory=1Gi,hugepages-1M=2Gi" */
static enum err_code add_reserved_memory(const struct config_row *r, char *node, json_t *into, struct err *e)
{
    char *rest = strchr(node, ':'), *item;
    json_t *m, *limits;

    (void)r;
    if (rest == NULL || node[strspn(node, "0123456789")] != ':' || strlen(node) - strlen(rest) > 9)
        return err_set(e, ERR_INVALID, "\"%.100s\" is not node:memory=quantity,...", node);
    *rest++ = '\0';
    m = json_pack("{s:I, s:{}}", "numaNode", (json_int_t)strtoll(node, NULL, 10), "limits");
    if (json_array_append_new(into, m) != 0)
        return err_nomem(e);
    limits = json_object_get(m, "limits");
    while ((item = strsep(&rest, ",")) != NULL) {
        char *value = strchr(item, '=');

        if (value == NULL)
            return err_set(e, ERR_INVALID, "\"%.100s\" is not memory=quantity", item);
        *value++ = '\0';
        if (json_object_set_new(limits, item, json_string(value)) != 0)
            return err_nomem(e);
    }
    return ERR_OK;
}

/* ---- any type ---- */

static enum err_code flag_raw(const struct config_row *r, const char *text, json_t **ret, struct err *e)
{
    bool on;

    switch (r->type) {
    case T_BOOL:
        if (!flag_bool(text, &on))
            return err_set(e, ERR_INVALID, "\"%.100s\" is neither true nor false", text);
        return config_value_take(json_boolean(on), ret, e);
    case T_INT:
        return flag_int(text, ret, e);
    case T_FLOAT:
        return config_value_take(json_real(strtod(text, NULL)), ret, e);
    case T_TEXTS:
    case T_INTS:
        return flag_items(r, text, ",", json_array(), add_to_list, ret, e);
    case T_TEXT_MAP:
    case T_BOOL_MAP:
    case T_TEXTS_MAP:
    case T_COUNT_MAP:
        return flag_items(r, text, ",", json_object(), add_to_map, ret, e);
    case T_OBJECTS:
        return str_eq(r->flag, "register-with-taints")
                   ? flag_items(r, text, ",", json_array(), add_taint, ret, e)
                   : flag_items(r, text, ";", json_array(), add_reserved_memory, ret, e);
    case T_TEXT:
    case T_WORD:
    case T_PATH:
    case T_IP:
    case T_DURATION:
    case T_QUANTITY:
        break;
    }
    return config_value_take(json_string(text), ret, e);
}

enum err_code config_flag_value(const struct config_row *r, const char *text, json_t **ret, struct err *e)
{
    json_auto_t *raw = NULL;

    if (!utf8_is_valid(text, strlen(text)))
        return err_set(e, ERR_INVALID, "it is not valid UTF-8");
    if (flag_raw(r, text, &raw, e) != ERR_OK)
        return e->code;
    return config_check_value(r, raw, ret, e);
}
