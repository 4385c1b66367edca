/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/json.h"

#include "base/buf.h"
#include "base/scope.h"
#include "base/utf8.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

const char *json_str(const json_t *obj, const char *key)
{
    return json_string_value(json_object_get(obj, key));
}

json_int_t json_int(const json_t *obj, const char *key, json_int_t otherwise)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

bool json_flag(const json_t *obj, const char *key)
{
    return json_is_true(json_object_get(obj, key));
}

bool json_has(const json_t *list, const char *text)
{
    const json_t *v;
    size_t i;

    json_array_foreach (list, i, v)
        if (json_is_string(v) && text != NULL && strcmp(json_string_value(v), text) == 0)
            return true;
    return false;
}

json_t *json_named(const json_t *list, const char *name)
{
    json_t *v;
    size_t i;

    json_array_foreach (list, i, v)
        if (name != NULL && str_eq(json_str(v, "name"), name))
            return v;
    return NULL;
}

json_t *json_string_of(const char *value)
{
    size_t n = strlen(value), i = 0;
    json_t *s = json_string(value);
    buf_auto clean = BUF_INIT(3 * n);

    if (s != NULL)
        return s;
    while (i < n) {
        size_t len = utf8_char(value + i, n - i);

        if (len == 0)
            buf_adds(&clean, "\xef\xbf\xbd");
        else
            buf_add(&clean, value + i, len);
        i += len == 0 ? 1 : len;
    }
    return clean.failed ? NULL : json_stringn(clean.p, clean.n);
}

bool json_put_str(json_t *obj, const char *key, const char *value)
{
    if (value == NULL || *value == '\0') {
        json_object_del(obj, key);
        return true;
    }
    return json_object_set_new(obj, key, json_string_of(value)) == 0; /* rejects NULL */
}

enum err_code json_parse(const char *text, size_t n, size_t max, json_t **ret, const char *what,
                         struct err *e)
{
    json_error_t why;
    json_t *v;
    char *near;

    if (n > max)
        return err_set(e, ERR_EXHAUSTED, "%s: %zu bytes are more than the %zu allowed", what, n, max);
    v = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (v != NULL) {
        *ret = v;
        return ERR_OK;
    }
    if (json_error_code(&why) == json_error_out_of_memory)
        return err_nomem(e);
    /* jansson quotes the text around the error, which may be a Secret's; the position is enough. */
    near = strstr(why.text, " near ");
    if (near != NULL)
        *near = '\0';
    text_printable(why.text);
    return err_set(e, ERR_INVALID, "%s: line %d, column %d: %s", what, why.line, why.column, why.text);
}

char *json_text(const json_t *v)
{
    return json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
}

static void wipe_and_free(void *p)
{
    if (p != NULL)
        explicit_bzero(p, malloc_usable_size(p));
    free(p);
}

void json_wipe_freed(void)
{
    json_set_alloc_funcs(malloc, wipe_and_free);
}

void json_add_text(struct buf *b, const json_t *v, bool pretty, int columns)
{
    secret_auto text = v != NULL ? json_dumps(v, pretty ? JSON_INDENT(2) : JSON_COMPACT) : NULL;

    if (text == NULL) {
        b->failed = true;
        return;
    }
    for (const char *line = text, *end; *line != '\0'; line = end) { /* strings have no line breaks */
        if (line != text)
            buf_addf(b, "%*s", columns, "");
        end = strchrnul(line, '\n');
        end += *end == '\n';
        buf_add(b, line, (size_t)(end - line));
    }
}

json_t *json_at(const json_t *object, const char *path)
{
    const json_t *value = object;
    char key[64];

    while (value != NULL) {
        const char *dot = strchr(path, '.');
        size_t n = dot != NULL ? (size_t)(dot - path) : strlen(path);

        if (n >= sizeof(key))
            return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        value = json_object_get(value, key);
        if (dot == NULL)
            break;
        path = dot + 1;
    }
    return (json_t *)(uintptr_t)value;
}

static int json_order_by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **json_sorted_keys(const json_t *object)
{
    const char **keys = calloc(json_object_size(object) + 1, sizeof(*keys));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (keys == NULL)
        return NULL;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value)
        keys[n++] = key;
    qsort(keys, n, sizeof(*keys), json_order_by_key);
    return keys;
}
