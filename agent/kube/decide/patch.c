/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/patch.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- quantities ---- */

#define QUANTITY_DIGITS_MAX 18

static bool suffix_factor(const char *s, __int128 *ret_nano)
{
    static const struct {
        const char *suffix;
        int bits, tens; /* nano units: 10^tens * 2^bits */
    } table[] = { { "n", 0, 0 },   { "u", 0, 3 },   { "m", 0, 6 },   { "", 0, 9 },
                  { "k", 0, 12 },  { "M", 0, 15 },  { "G", 0, 18 },  { "T", 0, 21 },
                  { "Ki", 10, 9 }, { "Mi", 20, 9 }, { "Gi", 30, 9 }, { "Ti", 40, 9 } };

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(s, table[i].suffix) != 0)
            continue;
        *ret_nano = (__int128)1 << table[i].bits;
        for (int n = 0; n < table[i].tens; n++)
            *ret_nano *= 10;
        return true;
    }
    return false;
}

/* False: none, or one that is too large or too long for this; then the texts are compared. */
static bool quantity_nano(const char *text, __int128 *ret)
{
    __int128 value = 0, factor = 0;
    int digits = 0, fraction = 0;
    bool point = false;

    for (; isdigit((unsigned char)*text) || (*text == '.' && !point); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        if (++digits > QUANTITY_DIGITS_MAX)
            return false;
        value = value * 10 + (*text - '0');
        fraction += point;
    }
    /* 10^18 * 10^21 would not fit into 127 bits. */
    if (digits == 0 || !suffix_factor(text, &factor) || value > ((__int128)1 << 126) / factor)
        return false;
    value *= factor;
    for (; fraction > 0; fraction--) {
        if (value % 10 != 0)
            return false;
        value /= 10;
    }
    *ret = value;
    return true;
}

bool patch_quantity_equal(const char *a, const char *b)
{
    __int128 x = 0, y = 0;

    if (strcmp(a, b) == 0)
        return true;
    return quantity_nano(a, &x) && quantity_nano(b, &y) && x == y;
}

/* ---- equality ---- */

bool patch_is_zero(const json_t *v)
{
    const char *key;
    json_t *member;

    switch (v != NULL ? json_typeof(v) : JSON_NULL) {
    case JSON_NULL:
    case JSON_FALSE:
        return true;
    case JSON_STRING:
        return json_string_length(v) == 0;
    case JSON_INTEGER:
        return json_integer_value(v) == 0;
    case JSON_ARRAY:
        return json_array_size(v) == 0;
    case JSON_OBJECT:
        json_object_foreach ((json_t *)v, key, member)
            if (!patch_is_zero(member))
                return false;
        return true;
    case JSON_REAL:
    case JSON_TRUE:
        return false;
    }
    return false;
}

static bool are_quantities(const char *key)
{
    static const char *const keys[] = { "capacity", "allocatable", "allocatedResources", "limits",
                                        "requests" };

    for (size_t i = 0; key != NULL && i < ARRAY_LEN(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static bool values_equal(const json_t *a, const json_t *b, bool quantities);

static bool objects_equal(const json_t *a, const json_t *b, bool quantities)
{
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)a, key, v)
        if (!values_equal(v, json_object_get(b, key), quantities || are_quantities(key)))
            return false;
    json_object_foreach ((json_t *)b, key, v)
        if (json_object_get(a, key) == NULL && !patch_is_zero(v))
            return false;
    return true;
}

static bool values_equal(const json_t *a, const json_t *b, bool quantities)
{
    size_t i;
    json_t *v;

    if (patch_is_zero(a) || patch_is_zero(b))
        return patch_is_zero(a) == patch_is_zero(b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_object(a))
        return objects_equal(a, b, quantities);
    if (!json_is_array(a))
        return quantities && json_is_string(a)
                   ? patch_quantity_equal(json_string_value(a), json_string_value(b))
                   : json_equal(a, b);
    if (json_array_size(a) != json_array_size(b))
        return false;
    json_array_foreach ((json_t *)a, i, v)
        if (!values_equal(v, json_array_get(b, i), quantities))
            return false;
    return true;
}

bool patch_equal(const json_t *a, const json_t *b)
{
    return values_equal(a, b, false);
}

/* ---- differences ---- */

static const char *merge_key(const char *list)
{
    static const char *const table[][2] = {
        { "conditions", "type" }, { "addresses", "type" }, { "podIPs", "ip" }, { "hostIPs", "ip" }
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i][0], list) == 0)
            return table[i][1];
    return NULL;
}

static const json_t *element(const json_t *list, const char *by, const char *value)
{
    size_t i;
    json_t *v;

    json_array_foreach ((json_t *)list, i, v)
        if (value != NULL && str_eq(json_str(v, by), value))
            return v;
    return NULL;
}

static void diff_objects(const json_t *from, const json_t *to, bool quantities, json_t *patch);

static bool order_differs(const json_t *from, const json_t *to, const char *by)
{
    size_t next = 0, i;
    json_t *v;

    /* Elements of both lists, in the order of each. */
    json_array_foreach ((json_t *)from, i, v) {
        const char *name = json_str(v, by);

        if (element(to, by, name) == NULL)
            continue;
        while (next < json_array_size(to) &&
               element(from, by, json_str(json_array_get(to, next), by)) == NULL)
            next++;
        if (!str_eq(json_str(json_array_get(to, next++), by), name))
            return true;
    }
    return false;
}

static void diff_merged(const char *key, const char *by, const json_t *from, const json_t *to, json_t *patch)
{
    json_t *changes = json_array(), *order = json_array(), *v;
    char directive[64];
    size_t i;

    json_array_foreach ((json_t *)to, i, v) {
        const char *name = json_str(v, by);
        const json_t *before = element(from, by, name);
        json_t *change = json_object();

        if (before == NULL)
            json_object_update(change, v);
        else
            diff_objects(before, v, false, change);
        if (json_object_size(change) > 0) {
            json_object_set_new(change, by, json_string(name != NULL ? name : ""));
            json_array_append(changes, change);
        }
        json_decref(change);
        json_array_append_new(order, json_pack("{s:s?}", by, name));
    }
    json_array_foreach ((json_t *)from, i, v)
        if (element(to, by, json_str(v, by)) == NULL)
            json_array_append_new(changes, json_pack("{s:s, s:s?}", "$patch", "delete", by, json_str(v, by)));
    if (json_array_size(changes) > 0)
        json_object_set(patch, key, changes);
    if (json_array_size(changes) > 0 || order_differs(from, to, by)) {
        snprintf(directive, sizeof(directive), "$setElementOrder/%s", key);
        json_object_set(patch, directive, order);
    }
    json_decref(changes);
    json_decref(order);
}

static void diff_member(const char *key, const json_t *from, json_t *to, bool quantities, json_t *patch)
{
    const char *by = merge_key(key);
    json_t *inner;

    if (patch_is_zero(from) && patch_is_zero(to))
        return;
    if (patch_is_zero(from) || to == NULL || json_is_null(to)) {
        json_object_set_new(patch, key, to == NULL ? json_null() : json_deep_copy(to));
    } else if (json_is_object(from) && json_is_object(to)) {
        inner = json_object();
        diff_objects(from, to, quantities, inner);
        if (json_object_size(inner) > 0)
            json_object_set(patch, key, inner);
        json_decref(inner);
    } else if (by != NULL && json_is_array(from) && json_is_array(to)) {
        diff_merged(key, by, from, to, patch);
    } else if (!values_equal(from, to, quantities)) {
        json_object_set_new(patch, key, json_deep_copy(to));
    }
}

static void diff_objects(const json_t *from, const json_t *to, bool quantities, json_t *patch)
{
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)to, key, v)
        diff_member(key, json_object_get(from, key), v, quantities || are_quantities(key), patch);
    json_object_foreach ((json_t *)from, key, v)
        if (json_object_get(to, key) == NULL)
            diff_member(key, v, NULL, quantities, patch);
}

json_t *patch_two_way(const json_t *from, const json_t *to)
{
    json_t *patch = json_object();

    if (patch != NULL)
        diff_objects(from, to, false, patch);
    return patch;
}
