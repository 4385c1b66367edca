/* SPDX-License-Identifier: Apache-2.0 */
/* show - a selection in readable form: each value with its origin, and for secrets only the length. There is
 * no fingerprint, because that of a short password would reveal it. */
#include "agent/kube/config/internal.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"

#include <string.h>

static json_t *hidden(size_t bytes)
{
    return json_pack("{s:b, s:I}", "secret", 1, "bytes", (json_int_t)bytes);
}

/* A URL without its password. */
static json_t *url_without_password(const char *text)
{
    const char *begin = strstr(text, "://"), *at, *colon;
    size_t authority;
    str_auto shown = NULL;

    begin = begin != NULL ? begin + 3 : text;
    authority = strcspn(begin, "/?#");
    at = memrchr(begin, '@', authority);
    colon = at != NULL ? memchr(begin, ':', (size_t)(at - begin)) : NULL;
    if (colon == NULL)
        return json_string(text);
    shown = str_printf("%.*s:***%s", (int)(colon - text), text, at);
    return shown != NULL ? json_string(shown) : NULL;
}

static size_t decoded_length(const char *text)
{
    size_t n = strlen(text), padding = 0;

    while (padding < 2 && padding < n && text[n - 1 - padding] == '=')
        padding++;
    return n / 4 * 3 - (n >= 4 ? padding : 0);
}

static json_t *show_object(const struct kube_field *fields, const json_t *value);

static json_t *show_secret_map(const json_t *map)
{
    json_t *out = json_object(), *v;
    const char *key;

    json_object_foreach ((json_t *)map, key, v)
        if (json_object_set_new(out, key, hidden(json_string_length(v))) != 0) {
            json_decref(out);
            return NULL;
        }
    return out;
}

/* The one list of objects: env of exec, by names. */
static json_t *show_env(const json_t *list)
{
    json_t *out = json_object(), *pair;
    size_t i;

    json_array_foreach ((json_t *)list, i, pair) {
        const char *name = json_str(pair, "name"), *value = json_str(pair, "value");
        if (json_object_set_new(out, name != NULL ? name : "", hidden(value != NULL ? strlen(value) : 0)) !=
            0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

static json_t *show_field(const struct kube_field *f, const json_t *v)
{
    if (f->type == KT_DATA && !f->secret)
        return json_pack("{s:I}", "bytes", (json_int_t)decoded_length(json_string_value(v)));
    if (f->type == KT_DATA)
        return hidden(decoded_length(json_string_value(v)));
    if (f->type == KT_TEXT_MAP && f->secret)
        return show_secret_map(v);
    if (f->type == KT_OBJECT)
        return show_object(f->fields, v);
    if (f->type == KT_OBJECTS)
        return show_env(v);
    if (f->secret)
        return hidden(json_string_length(v));
    if (strcmp(f->name, "server") == 0 || strcmp(f->name, "proxy-url") == 0)
        return url_without_password(json_string_value(v));
    return json_incref((json_t *)v);
}

static json_t *show_object(const struct kube_field *fields, const json_t *value)
{
    json_t *out = json_object();

    for (const struct kube_field *f = fields; f->name != NULL; f++) {
        const json_t *v = json_object_get(value, f->name);
        if (v != NULL && json_object_set_new(out, f->name, show_field(f, v)) != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

static bool show_put(json_t *to, const char *member, const char *text)
{
    return json_object_set_new(to, member, text != NULL ? json_string_of(text) : json_null()) == 0;
}

static json_t *show_part(const struct kube_part *p, enum kube_kind kind)
{
    json_t *out = json_object(), *values = json_object();
    bool ok = out != NULL && values != NULL && show_put(out, "name", p->name) &&
              show_put(out, "named", p->named) && show_put(out, "from", p->from);

    for (const struct kube_field *f = kube_fields[kind]; ok && f->name != NULL; f++) {
        const json_t *v = json_object_get(p->value, f->name);
        json_t *shown = v != NULL ? show_field(f, v) : NULL;
        if (v != NULL)
            ok = shown != NULL && json_object_set_new(values, f->name,
                                                      json_pack("{s:o, s:s*}", "value", shown, "from",
                                                                json_str(p->origin, f->name))) == 0;
    }
    if (ok && json_object_set_new(out, "values", json_incref(values)) == 0) {
        json_decref(values);
        return out;
    }
    json_decref(values);
    json_decref(out);
    return NULL;
}

static json_t *show_paths(const struct strs *paths)
{
    json_t *out = json_array();

    for (size_t i = 0; i < paths->n; i++)
        if (json_array_append_new(out, json_string_of(paths->v[i])) != 0) {
            json_decref(out);
            return NULL;
        }
    return out;
}

json_t *kube_config_show(const struct kube_choice *c, const struct kube_config *all)
{
    json_t *out = json_object();
    bool ok = json_object_set_new(out, "files", show_paths(&all->files)) == 0 &&
              json_object_set_new(out, "missing", show_paths(&all->missing)) == 0 &&
              show_put(out, "server", c->server);

    for (enum kube_kind k = 0; ok && k < KUBE_KINDS; k++)
        ok = json_object_set_new(out, kube_kind_name[k], show_part(&c->of[k], k)) == 0;
    if (ok)
        return out;
    json_decref(out);
    return NULL;
}
