/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMap and Secret: decoding of their values, and rules for keys, sizes and Secret types. */
#include "agent/api/manifest/internal.h"

#include <stdlib.h>
#include <string.h>

#define DATA_MAX (1024 * 1024) /* sum of the values' bytes, as in Kubernetes */

/* ---- base64 ---- */
static int base64_digit(unsigned char ch)
{
    if (ch >= 'A' && ch <= 'Z')
        return ch - 'A';
    if (ch >= 'a' && ch <= 'z')
        return ch - 'a' + 26;
    if (ch >= '0' && ch <= '9')
        return ch - '0' + 52;
    if (ch == '+')
        return 62;
    return ch == '/' ? 63 : -1;
}

bool api_base64(const char *text, size_t n, unsigned char *out, size_t *ret_n)
{
    unsigned value = 0, digits = 0, padding = 0;
    size_t written = 0;

    for (size_t i = 0; i < n; i++) {
        int d;
        if (text[i] == '\n' || text[i] == '\r')
            continue;
        if (text[i] == '=') {
            padding++;
            digits++;
            /* at least the first two of four must be digits */
            if (digits % 4 == 1 || digits % 4 == 2 || padding > 2)
                return false;
            continue;
        }
        d = base64_digit((unsigned char)text[i]);
        if (d < 0 || padding > 0)
            return false;
        value = (value << 6 | (unsigned)d) & 0xffffff;
        digits++;
        if (digits % 4 == 2)
            out[written++] = (unsigned char)(value >> 4);
        else if (digits % 4 == 3)
            out[written++] = (unsigned char)(value >> 2);
        else if (digits % 4 == 0)
            out[written++] = (unsigned char)value;
    }
    if (digits % 4 != 0)
        return false;
    *ret_n = written;
    return true;
}

/* ---- data ---- */
void api_json_wipe(json_t *v)
{
    const char *key;
    json_t *child;
    size_t i;

    if (json_is_string(v)) {
        /* jansson owns the bytes and only frees them */
        explicit_bzero((char *)(uintptr_t)json_string_value(v), json_string_length(v));
    } else if (json_is_object(v)) {
        json_object_foreach (v, key, child)
            api_json_wipe(child);
    }
    json_array_foreach (v, i, child)
        api_json_wipe(child);
}

static bool api_config_set_text(struct api_check *c, struct api_datum *d, const json_t *value)
{
    d->size = json_string_length(value);
    d->data = api_alloc(c, d->size + 1);
    if (d->data == NULL)
        return false;
    memcpy(d->data, json_string_value(value), d->size);
    return true;
}

static bool set_base64(struct api_check *c, struct api_datum *d, const json_t *value)
{
    size_t n = json_string_length(value);

    d->data = api_alloc(c, n / 4 * 3 + 4);
    if (d->data == NULL)
        return false;
    if (!api_base64(json_string_value(value), n, d->data, &d->size)) {
        api_fault(c, "expected base64, padded with '='; plain text goes into %s",
                  d->binary ? "data" : "stringData");
        return false;
    }
    return true;
}

static bool check_key(struct api_check *c, const char *key)
{
    const char *rule = api_format_rule(API_FMT_DATA_KEY, key);

    if (rule != NULL)
        api_fault(c, "the key %s %s", QUOTE(key), rule);
    return rule == NULL;
}

static void add_data(struct api_check *c, struct api_config *config, const json_t *object, const char *field,
                     bool base64)
{
    json_t *map = json_object_get(object, field), *value;
    size_t outer = api_enter(c, field);
    const char *key;

    if (json_is_object(map)) {
        json_object_foreach (map, key, value) {
            struct api_datum *d = &config->data[config->n_data];
            size_t mark = api_enter_key(c, key);
            *d = (struct api_datum){ .binary = base64 && config->kind == API_CONFIG_MAP };
            if (check_key(c, key) && json_is_string(value) &&
                (base64 ? set_base64(c, d, value) : api_config_set_text(c, d, value))) {
                d->key = api_strdup(c, key);
                config->n_data += d->key != NULL;
            }
            api_leave(c, mark);
        }
    }
    api_leave(c, outer);
}

static int datum_order(const void *a, const void *b)
{
    const struct api_datum *x = a, *y = b;

    return strcmp(x->key, y->key);
}

static size_t members(const json_t *object, const char *field)
{
    return json_object_size(json_object_get(object, field));
}

/* stringData is write-only in Kubernetes: it is merged over data. */
static void merge_string_data(json_t *object)
{
    const char *key;
    json_t *value;

    if (!json_is_object(json_object_get(object, "data")))
        return;
    json_object_foreach (json_object_get(object, "stringData"), key, value) {
        json_t *covered = json_object_get(json_object_get(object, "data"), key);
        if (covered != NULL) {
            api_json_wipe(covered);
            json_object_del(json_object_get(object, "data"), key);
        }
    }
}

/* ---- Secret types ---- */
static void need_key(struct api_check *c, const struct api_config *config, const char *key)
{
    size_t outer = api_enter(c, "data");

    api_enter_key(c, key);
    if (api_config_get(config, key) == NULL)
        api_fault(c, "required for type %s", config->type);
    api_leave(c, outer);
}

static void need_json(struct api_check *c, const struct api_config *config, const char *key)
{
    const struct api_datum *d = api_config_get(config, key);
    size_t outer = api_enter(c, "data");
    json_error_t why;
    json_t *v;

    api_enter_key(c, key);
    if (d == NULL) {
        api_fault(c, "required for type %s", config->type);
    } else {
        v = json_loadb(d->data, d->size, JSON_ALLOW_NUL, &why);
        if (v == NULL && (why.text[0] == '\0' || json_error_code(&why) == json_error_out_of_memory))
            c->no_memory = true; /* jansson reports nothing when its first allocation fails */
        else if (!json_is_object(v))
            api_fault(c, "must be a JSON object for type %s", config->type);
        api_json_wipe(v);
        json_decref(v);
    }
    api_leave(c, outer);
}

static void api_config_check_type(struct api_check *c, const struct api_config *config)
{
    static const char account[] = "kubernetes.io/service-account.name";
    const struct api_datum *d;
    const char *name;

    if (str_eq(config->type, "kubernetes.io/tls")) {
        need_key(c, config, "tls.crt");
        need_key(c, config, "tls.key");
    } else if (str_eq(config->type, "kubernetes.io/dockercfg")) {
        need_json(c, config, ".dockercfg");
    } else if (str_eq(config->type, "kubernetes.io/dockerconfigjson")) {
        need_json(c, config, ".dockerconfigjson");
    } else if (str_eq(config->type, "kubernetes.io/basic-auth")) {
        if (api_config_get(config, "password") == NULL && api_config_get(config, "username") == NULL) {
            need_key(c, config, "username"); /* or the other one */
            need_key(c, config, "password");
        }
    } else if (str_eq(config->type, "kubernetes.io/ssh-auth")) {
        d = api_config_get(config, "ssh-privatekey");
        if (d == NULL || d->size == 0)
            api_fault_at(c, "data[ssh-privatekey]", "required for type %s", config->type);
    } else if (str_eq(config->type, "kubernetes.io/service-account-token")) {
        name = api_kvs_get(&config->meta.annotations, account);
        if (name == NULL || name[0] == '\0')
            api_fault_at(c, "metadata.annotations[kubernetes.io/service-account.name]",
                         "required for type %s", config->type);
    }
}

/* ---- the object ---- */
static void check_data(struct api_check *c, struct api_config *config)
{
    size_t total = 0;

    for (size_t i = 0; i < config->n_data; i++) {
        total += config->data[i].size;
        if (i > 0 && strcmp(config->data[i - 1].key, config->data[i].key) == 0) {
            size_t outer = api_enter(c, "data");
            api_enter_key(c, config->data[i].key);
            api_fault(c, "the key is in binaryData, too");
            api_leave(c, outer);
        }
    }
    if (total > DATA_MAX)
        api_fault_at(c, "data", "%zu bytes are too many, at most %d (1 MiB) are allowed", total, DATA_MAX);
}

void api_build_config(struct api_check *c, struct api_config *config, json_t *object)
{
    bool secret = config->kind == API_SECRET;
    size_t before,
        most = members(object, "data") + members(object, "binaryData") + members(object, "stringData");

    api_walk(c, secret ? &api_schema_secret : &api_schema_config_map, object, config);
    config->data = api_alloc(c, (most + 1) * sizeof(*config->data));
    if (config->data == NULL)
        return;
    before = c->faults;
    if (secret) {
        merge_string_data(object);
        add_data(c, config, object, "data", true);
        add_data(c, config, object, "stringData", false);
    } else {
        add_data(c, config, object, "data", false);
        add_data(c, config, object, "binaryData", true);
    }
    if (config->n_data > 1)
        qsort(config->data, config->n_data, sizeof(*config->data), datum_order);
    check_data(c, config);
    if (secret && c->faults == before) /* an unreadable value is left out, but not missing */
        api_config_check_type(c, config);
    api_validate_meta(c, &config->meta);
}
