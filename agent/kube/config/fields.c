/* SPDX-License-Identifier: Apache-2.0 */
/* fields - the fields of a kubeconfig (k8s.io/client-go/tools/clientcmd/api/v1/types.go), and their types. A
 * field that is not in a table is dropped, as Go's decoder does. */
#include "agent/kube/config/file.h"
#include "agent/kube/config/internal.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"

#include <string.h>

static const struct kube_field extension_fields[] = { { "name", KT_TEXT, false, NULL },
                                                      { NULL, KT_TEXT, false, NULL } };

static const struct kube_field cluster_fields[] = {
    { "server", KT_TEXT, false, NULL },
    { "tls-server-name", KT_TEXT, false, NULL },
    { "insecure-skip-tls-verify", KT_BOOL, false, NULL },
    { "certificate-authority", KT_PATH, false, NULL },
    { "certificate-authority-data", KT_DATA, false, NULL },
    { "proxy-url", KT_TEXT, false, NULL },
    { "disable-compression", KT_BOOL, false, NULL },
    { "extensions", KT_EXTENSIONS, false, extension_fields },
    { NULL, KT_TEXT, false, NULL },
};

static const struct kube_field env_fields[] = {
    { "name", KT_TEXT, false, NULL },
    { "value", KT_TEXT, true, NULL },
    { NULL, KT_TEXT, false, NULL },
};

const struct kube_field kube_exec_fields[] = {
    { "apiVersion", KT_TEXT, false, NULL },      { "command", KT_COMMAND, false, NULL },
    { "args", KT_TEXTS, false, NULL },           { "env", KT_OBJECTS, true, env_fields },
    { "interactiveMode", KT_TEXT, false, NULL }, { "provideClusterInfo", KT_BOOL, false, NULL },
    { "installHint", KT_TEXT, false, NULL },     { NULL, KT_TEXT, false, NULL },
};

static const struct kube_field provider_fields[] = {
    { "name", KT_TEXT, false, NULL },
    { "config", KT_TEXT_MAP, true, NULL },
    { NULL, KT_TEXT, false, NULL },
};

static const struct kube_field user_fields[] = {
    { "client-certificate", KT_PATH, false, NULL },
    { "client-certificate-data", KT_DATA, false, NULL },
    { "client-key", KT_PATH, false, NULL },
    { "client-key-data", KT_DATA, true, NULL },
    { "token", KT_TEXT, true, NULL },
    { "tokenFile", KT_PATH, false, NULL },
    { "username", KT_TEXT, false, NULL },
    { "password", KT_TEXT, true, NULL },
    { "as", KT_TEXT, false, NULL },
    { "as-uid", KT_TEXT, false, NULL },
    { "as-groups", KT_TEXTS, false, NULL },
    { "as-user-extra", KT_TEXTS_MAP, false, NULL },
    { "auth-provider", KT_OBJECT, false, provider_fields },
    { "exec", KT_OBJECT, false, kube_exec_fields },
    { "extensions", KT_EXTENSIONS, false, extension_fields },
    { NULL, KT_TEXT, false, NULL },
};

static const struct kube_field context_fields[] = {
    { "cluster", KT_TEXT, false, NULL },   { "user", KT_TEXT, false, NULL },
    { "namespace", KT_TEXT, false, NULL }, { "extensions", KT_EXTENSIONS, false, extension_fields },
    { NULL, KT_TEXT, false, NULL },
};

const struct kube_field *const kube_fields[KUBE_KINDS] = { context_fields, cluster_fields, user_fields };
const char *const kube_kind_list[KUBE_KINDS] = { "contexts", "clusters", "users" };
const char *const kube_kind_name[KUBE_KINDS] = { "context", "cluster", "user" };

const char *kube_type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "a mapping";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

static enum err_code wrong_type(const json_t *v, const char *needed, struct err *e)
{
    bool quotes = strcmp(needed, "a text") == 0 && (json_is_number(v) || json_is_boolean(v));

    return err_set(e, ERR_INVALID, "%s, where %s is needed%s", kube_type_name(v), needed,
                   quotes ? " (numbers and words like yes, on, y need quotes)" : "");
}

/* encoding/base64's StdEncoding: with padding; line breaks are ignored. */
static enum err_code take_data(const char *text, json_t **ret, struct err *e)
{
    str_auto plain = strdup(text);
    mem_auto unsigned char *bytes = malloc(BASE64_DECODED_MAX(strlen(text)));
    size_t n = 0, bytes_n;
    bool ok;

    if (plain == NULL || bytes == NULL)
        return err_nomem(e);
    for (const char *p = text; *p != '\0'; p++)
        if (*p != '\r' && *p != '\n')
            plain[n++] = *p;
    plain[n] = '\0';
    ok = n % 4 == 0 && base64_decode(plain, n, bytes, &bytes_n);
    if (ok && (*ret = json_string(plain)) == NULL)
        err_nomem(e);
    else if (!ok)
        err_set(e, ERR_INVALID, "it is not base64");
    explicit_bzero(plain, n);
    explicit_bzero(bytes, BASE64_DECODED_MAX(strlen(text)));
    return e->code;
}

static enum err_code take_path(const char *text, const char *base, json_t **ret, struct err *e)
{
    str_auto path = NULL;

    if (text[0] == '/' || text[0] == '\0')
        return (*ret = json_string(text)) != NULL ? ERR_OK : err_nomem(e);
    path = kube_path_join(base, text);
    return path != NULL && (*ret = json_string(path)) != NULL ? ERR_OK : err_nomem(e);
}

static enum err_code take_texts(const json_t *v, json_t **ret, struct err *e)
{
    json_t *item;
    size_t i;

    if (!json_is_array(v))
        return wrong_type(v, "a list of texts", e);
    if ((*ret = json_array()) == NULL)
        return err_nomem(e);
    json_array_foreach ((json_t *)v, i, item) {
        const char *text = json_is_null(item) ? "" : json_string_value(item);
        if (text == NULL) {
            json_decref(take_ptr(ret));
            wrong_type(item, "a text", e);
            return err_wrap(e, "[%zu]", i);
        }
        if (json_array_append_new(*ret, json_string(text)) != 0)
            return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code take_map(const json_t *v, bool of_lists, json_t **ret, struct err *e)
{
    const char *key;
    json_t *item;

    if (!json_is_object(v))
        return wrong_type(v, "a mapping", e);
    if ((*ret = json_object()) == NULL)
        return err_nomem(e);
    json_object_foreach ((json_t *)v, key, item) {
        json_t *taken = NULL;
        if (json_is_null(item))
            taken = of_lists ? json_array() : json_string("");
        else if (of_lists)
            ERR_IGNORE(take_texts(item, &taken, e));
        else if (json_is_string(item))
            taken = json_incref(item);
        else
            wrong_type(item, "a text", e);
        if (e->code == ERR_OK && json_object_set_new(*ret, key, taken) != 0)
            err_nomem(e);
        if (e->code != ERR_OK) {
            json_decref(take_ptr(ret));
            return err_wrap(e, "[%.100s]", key);
        }
    }
    return ERR_OK;
}

static enum err_code take_objects(const struct kube_field *f, const json_t *v, const char *base, json_t **ret,
                                  struct err *e)
{
    json_t *item;
    size_t i;

    if (!json_is_array(v))
        return wrong_type(v, "a list", e);
    if ((*ret = json_array()) == NULL)
        return err_nomem(e);
    json_array_foreach ((json_t *)v, i, item) {
        json_t *taken = NULL;
        if (kube_fields_take(f->fields, item, base, &taken, e) == ERR_OK &&
            json_array_append_new(*ret, taken) != 0)
            err_nomem(e);
        if (e->code != ERR_OK) {
            json_decref(take_ptr(ret));
            return err_wrap(e, "[%zu]", i);
        }
    }
    return ERR_OK;
}

static enum err_code take_extensions(const struct kube_field *f, const json_t *v, const char *base,
                                     json_t **ret, struct err *e)
{
    json_auto_t *checked = NULL, *by_name = json_object();
    json_t *item;
    size_t i;

    if (by_name == NULL)
        return err_nomem(e);
    if (take_objects(f, v, base, &checked, e) != ERR_OK)
        return e->code;
    json_array_foreach (checked, i, item) {
        const char *name = json_str(item, "name");
        json_t *content = json_object_get(json_array_get(v, i), "extension");
        if (name == NULL)
            name = "";
        if (json_object_get(by_name, name) != NULL)
            return err_set(e, ERR_INVALID, "[%zu]: the name \"%.100s\" is given twice", i, name);
        if (json_object_set_new(by_name, name, content != NULL ? json_incref(content) : json_null()) != 0)
            return err_nomem(e);
    }
    *ret = json_incref(by_name);
    return ERR_OK;
}

static enum err_code take_one(const struct kube_field *f, const json_t *v, const char *base, json_t **ret,
                              struct err *e)
{
    switch (f->type) {
    case KT_TEXT:
    case KT_PATH:
    case KT_DATA:
    case KT_COMMAND:
        if (!json_is_string(v))
            return wrong_type(v, "a text", e);
        if (f->type == KT_DATA)
            return take_data(json_string_value(v), ret, e);
        if (f->type == KT_PATH || (f->type == KT_COMMAND && strchr(json_string_value(v), '/') != NULL))
            return take_path(json_string_value(v), base, ret, e);
        *ret = json_incref((json_t *)v);
        return ERR_OK;
    case KT_BOOL:
        if (!json_is_boolean(v))
            return wrong_type(v, "true or false", e);
        *ret = json_incref((json_t *)v);
        return ERR_OK;
    case KT_TEXTS:
        return take_texts(v, ret, e);
    case KT_TEXTS_MAP:
    case KT_TEXT_MAP:
        return take_map(v, f->type == KT_TEXTS_MAP, ret, e);
    case KT_OBJECT:
        return kube_fields_take(f->fields, v, base, ret, e);
    case KT_OBJECTS:
        return take_objects(f, v, base, ret, e);
    case KT_EXTENSIONS:
        return take_extensions(f, v, base, ret, e);
    }
    return err_set(e, ERR_INTERNAL, "type of the field");
}

static bool is_nothing(const json_t *v)
{
    return json_is_false(v) || (json_is_string(v) && json_string_length(v) == 0) ||
           (json_is_array(v) && json_array_size(v) == 0);
}

enum err_code kube_fields_take(const struct kube_field *fields, const json_t *value, const char *base,
                               json_t **ret, struct err *e)
{
    json_auto_t *taken = json_object();

    if (taken == NULL)
        return err_nomem(e);
    if (value != NULL && !json_is_null(value) && !json_is_object(value))
        return wrong_type(value, "a mapping", e);
    for (const struct kube_field *f = fields; f->name != NULL; f++) {
        const json_t *v = json_object_get(value, f->name);
        json_t *one = NULL;

        if (v == NULL || json_is_null(v))
            continue;
        if (take_one(f, v, base, &one, e) != ERR_OK) {
            json_decref(one);
            return err_wrap(e, "%s", f->name);
        }
        if (is_nothing(one))
            json_decref(one);
        else if (json_object_set_new(taken, f->name, one) != 0)
            return err_nomem(e);
    }
    *ret = json_incref(taken);
    return ERR_OK;
}
