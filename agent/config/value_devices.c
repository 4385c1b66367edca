/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for settings about devices: extended resources, folders, options of the alignment. */
#include "agent/api/quantity.h"
#include "agent/config/internal.h"
#include "base/parse.h"
#include "deviceplugin/resource_name.h"

#include <string.h>

#define COUNT_MAX 9007199254740991 /* 2^53 - 1: exact for every reader of JSON */
#define DIR_MAX 200                /* bytes, as of the settings that are one path */

/* A number, or a text like "4" or "1k" as in a node's status. */
static enum err_code count_of(const json_t *v, int64_t *ret, struct err *e)
{
    struct quantity q;

    if (json_is_integer(v))
        q = quantity_from_int(json_integer_value(v), QUANTITY_DECIMAL_SI);
    else if (!json_is_string(v))
        return err_set(e, ERR_INVALID, "not a whole number");
    else if (quantity_parse(json_string_value(v), &q, e) != ERR_OK)
        return e->code;
    if (q.nano < 0 || q.nano % 1000000000 != 0 || q.nano / 1000000000 > COUNT_MAX)
        return err_set(e, ERR_INVALID, "not a whole number from 0 to %lld", (long long)COUNT_MAX);
    *ret = (int64_t)(q.nano / 1000000000);
    return ERR_OK;
}

enum err_code config_check_counts(const json_t *value, json_t **ret, struct err *e)
{
    json_auto_t *all = json_object();
    const char *name;
    json_t *item;

    if (all == NULL)
        return err_nomem(e);
    json_object_foreach ((json_t *)value, name, item) {
        int64_t n = 0;

        if (!dp_resource_name_ok(name))
            return err_set(e, ERR_INVALID,
                           "\"%.100s\" is not the name of an extended resource, which is a domain outside "
                           "kubernetes.io, a slash, and up to 63 characters: example.com/slot",
                           name);
        if (!json_is_null(item) && count_of(item, &n, e) != ERR_OK) /* null removes the name */
            return err_wrap(e, "%.100s", name);
        if (json_object_set_new(all, name, json_is_null(item) ? json_null() : json_integer(n)) != 0)
            return err_nomem(e);
    }
    *ret = json_incref(all);
    return ERR_OK;
}

enum err_code config_check_dirs(const json_t *v, struct err *e)
{
    json_t *item;
    size_t i;

    json_array_foreach (v, i, item) {
        const char *dir = json_string_value(item);
        if (dir[0] != '/' || strstr(dir, "/../") != NULL || str_ends(dir, "/..") || strlen(dir) > DIR_MAX)
            return err_set(e, ERR_INVALID,
                           "\"%.220s\" is not an absolute path of at most %d bytes without \"..\"", dir,
                           DIR_MAX);
    }
    return ERR_OK;
}

/* Go's strconv.ParseBool() accepts these. */
static bool is_bool(const char *text)
{
    static const char *const words[] = { "true", "false", "1",    "0",     "t",    "f",
                                         "T",    "F",     "TRUE", "FALSE", "True", "False" };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

enum err_code config_check_topology_options(const json_t *v, struct err *e)
{
    const char *name;
    json_t *item;

    json_object_foreach ((json_t *)v, name, item) {
        const char *text = json_string_value(item);
        int64_t n;

        if (text == NULL)
            continue;
        if (strcmp(name, "prefer-closest-numa-nodes") == 0) {
            if (!is_bool(text))
                return err_set(e, ERR_INVALID, "%s: \"%.60s\" is neither true nor false", name, text);
        } else if (strcmp(name, "max-allowable-numa-nodes") == 0) {
            if (parse_i64(text, 8, 1 << 20, &n, name, e) != ERR_OK)
                return e->code;
        } else {
            return err_set(e, ERR_INVALID,
                           "unknown option \"%.60s\"; there are prefer-closest-numa-nodes, "
                           "max-allowable-numa-nodes",
                           name);
        }
    }
    return ERR_OK;
}
