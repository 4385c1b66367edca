/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"

#include <limits.h>
#include <string.h>

bool img_digest_is_valid(const char *digest)
{
    return digest != NULL && strlen(digest) == 71 && memcmp(digest, "sha256:", 7) == 0 &&
           strspn(digest + 7, "0123456789abcdef") == 64;
}

const char *img_layer_name(const struct img_image *i, size_t n)
{
    return strrchr(i->layer_dirs.v[n], '/') + 1;
}

size_t img_repository(const char *name)
{
    const size_t n = strcspn(name, "@");
    const char *colon = memrchr(name, ':', n), *slash = memrchr(name, '/', n);

    return colon != NULL && (slash == NULL || colon > slash) ? (size_t)(colon - name) : n;
}

/* ---- life ---- */

struct img_image *img_ref(struct img_image *i)
{
    i->refs++;
    return i;
}

static void strs_free(struct img_strs *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
}

void img_unref(struct img_image *i)
{
    if (i == NULL || --i->refs > 0)
        return;
    strs_free(&i->layer_dirs);
    strs_free(&i->env);
    strs_free(&i->entrypoint);
    strs_free(&i->cmd);
    strs_free(&i->volumes);
    free(i->id);
    free(i->digest);
    free(i->user);
    free(i->working_dir);
    free(i->stop_signal);
    free(i->created);
    free(i->layer_bytes);
    json_decref(i->pulled_for);
    free(i);
}

/* ---- from JSON ---- */

static enum err_code image_record_take_string(const json_t *record, const char *key, char **ret,
                                              struct err *e)
{
    const json_t *v = json_object_get(record, key);

    if (v == NULL)
        return ERR_OK;
    if (!json_is_string(v))
        return err_set(e, ERR_INVALID, "image record: %s is not a string", key);
    if (json_string_length(v) == 0)
        return ERR_OK;
    *ret = strdup(json_string_value(v));
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

static enum err_code image_record_take_strings(const json_t *record, const char *key, struct img_strs *ret,
                                               struct err *e)
{
    const json_t *list = json_object_get(record, key);
    json_t *item;
    size_t i;

    if (list == NULL)
        return ERR_OK;
    if (!json_is_array(list))
        return err_set(e, ERR_INVALID, "image record: %s is not a list", key);
    ret->v = calloc(json_array_size(list) + 1, sizeof(*ret->v)); /* NULL-terminated, as for argv */
    if (ret->v == NULL)
        return err_nomem(e);
    json_array_foreach (list, i, item) {
        if (!json_is_string(item))
            return err_set(e, ERR_INVALID, "image record: %s[%zu] is not a string", key, i);
        ret->v[i] = strdup(json_string_value(item));
        if (ret->v[i] == NULL)
            return err_nomem(e);
        ret->n++;
    }
    return ERR_OK;
}

static enum err_code image_record_take_volumes(const json_t *record, struct img_strs *ret, struct err *e)
{
    if (json_array_size(json_object_get(record, "volumes")) > IMG_MAX_VOLUMES)
        return err_set(e, ERR_INVALID, "image record: it has more than %d volumes", IMG_MAX_VOLUMES);
    if (image_record_take_strings(record, "volumes", ret, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < ret->n; i++)
        if (ret->v[i][0] != '/' || strlen(ret->v[i]) >= PATH_MAX)
            return err_set(e, ERR_INVALID, "image record: volumes[%zu] is not an absolute path", i);
    return ERR_OK;
}

static enum err_code take_digest(const json_t *record, const char *key, char **ret, struct err *e)
{
    const char *text = json_str(record, key);

    if (!img_digest_is_valid(text))
        return err_set(e, ERR_INVALID, "image record: %s is not a SHA-256 digest", key);
    *ret = strdup(text);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

static enum err_code take_layers(const json_t *record, const char *dir, struct img_strs *ret, struct err *e)
{
    const json_t *list = json_object_get(record, "layers");
    size_t n = json_array_size(list), i;
    json_t *item;

    if (n == 0 || n > IMG_MAX_LAYERS)
        return err_set(e, ERR_INVALID, "image record: it has %zu layers where 1 to %d may be", n,
                       IMG_MAX_LAYERS);
    ret->v = calloc(n + 1, sizeof(*ret->v));
    if (ret->v == NULL)
        return err_nomem(e);
    json_array_foreach (list, i, item) {
        if (!img_digest_is_valid(json_string_value(item)))
            return err_set(e, ERR_INVALID, "image record: layers[%zu] is not a SHA-256 digest", i);
        ret->v[i] = str_printf("%s/layers/%s", dir, json_string_value(item) + 7);
        if (ret->v[i] == NULL)
            return err_nomem(e);
        ret->n++;
    }
    return ERR_OK;
}

/* One size per layer, or none, in old records. */
static enum err_code take_layer_bytes(const json_t *record, struct img_image *i, struct err *e)
{
    const json_t *list = json_object_get(record, "layerBytes");
    json_t *item;
    size_t n;

    i->layer_bytes = calloc(i->layer_dirs.n, sizeof(*i->layer_bytes));
    if (i->layer_bytes == NULL)
        return err_nomem(e);
    if (list == NULL)
        return ERR_OK;
    if (json_array_size(list) != i->layer_dirs.n)
        return err_set(e, ERR_INVALID, "image record: layerBytes has not one size for each layer");
    json_array_foreach (list, n, item) {
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return err_set(e, ERR_INVALID, "image record: layerBytes[%zu] is not a size", n);
        i->layer_bytes[n] = (uint64_t)json_integer_value(item);
    }
    return ERR_OK;
}

static enum err_code image_record_take_pulled_for(const json_t *record, struct img_image *i, struct err *e)
{
    json_t *v = json_object_get(record, "pulledFor");

    if (v != NULL && !img_pulled_for_is_valid(v))
        return err_set(e, ERR_INVALID, "image record: pulledFor is not a valid list of pods");
    i->pulled_for = json_incref(v);
    return ERR_OK;
}

enum err_code img_record_version(const json_t *record, struct err *e)
{
    json_int_t version = json_int(record, "version", IMG_RECORD_VERSION);

    if (version != IMG_RECORD_VERSION)
        return err_set(e, ERR_INVALID, "version %lld is not %d", (long long)version, IMG_RECORD_VERSION);
    return ERR_OK;
}

enum err_code img_record_decode(const json_t *record, const char *store_dir, struct img_image **ret,
                                struct err *e)
{
    scoped(img_unref) struct img_image *i = calloc(1, sizeof(*i));
    json_int_t size = json_int(record, "sizeBytes", -1);

    if (i == NULL)
        return err_nomem(e);
    i->refs = 1;
    if (size < 0)
        return err_set(e, ERR_INVALID, "image record: sizeBytes is not a size");
    i->size_bytes = (uint64_t)size;
    i->pinned = json_flag(record, "pinned");
    if (img_record_version(record, e) != ERR_OK || take_digest(record, "id", &i->id, e) != ERR_OK ||
        take_digest(record, "digest", &i->digest, e) != ERR_OK ||
        take_layers(record, store_dir, &i->layer_dirs, e) != ERR_OK ||
        take_layer_bytes(record, i, e) != ERR_OK || image_record_take_pulled_for(record, i, e) != ERR_OK ||
        image_record_take_strings(record, "env", &i->env, e) != ERR_OK ||
        image_record_take_strings(record, "entrypoint", &i->entrypoint, e) != ERR_OK ||
        image_record_take_strings(record, "cmd", &i->cmd, e) != ERR_OK ||
        image_record_take_volumes(record, &i->volumes, e) != ERR_OK ||
        image_record_take_string(record, "user", &i->user, e) != ERR_OK ||
        image_record_take_string(record, "workingDir", &i->working_dir, e) != ERR_OK ||
        image_record_take_string(record, "stopSignal", &i->stop_signal, e) != ERR_OK ||
        image_record_take_string(record, "created", &i->created, e) != ERR_OK)
        return e->code;
    *ret = take_ptr(&i);
    return ERR_OK;
}

/* ---- to JSON ---- */

static bool put_strings(json_t *record, const char *key, const struct img_strs *s)
{
    json_t *list;

    if (s->n == 0)
        return true;
    list = json_array();
    for (size_t i = 0; i < s->n && list != NULL; i++)
        if (json_array_append_new(list, json_string(s->v[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    return json_object_set_new(record, key, list) == 0;
}

static bool put_layers(json_t *record, const struct img_image *i)
{
    json_t *list = json_array();

    for (size_t n = 0; n < i->layer_dirs.n && list != NULL; n++)
        if (json_array_append_new(list, json_sprintf("sha256:%s", img_layer_name(i, n))) != 0) {
            json_decref(list);
            list = NULL;
        }
    return json_object_set_new(record, "layers", list) == 0;
}

static bool put_layer_bytes(json_t *record, const struct img_image *i)
{
    json_t *list = json_array();

    for (size_t n = 0; n < i->layer_dirs.n && list != NULL; n++)
        if (json_array_append_new(list, json_integer((json_int_t)i->layer_bytes[n])) != 0) {
            json_decref(list);
            list = NULL;
        }
    return json_object_set_new(record, "layerBytes", list) == 0;
}

json_t *img_record_encode(const struct img_image *i)
{
    json_t *record = json_object();

    if (record == NULL)
        return NULL;
    if (json_object_set_new(record, "version", json_integer(IMG_RECORD_VERSION)) == 0 &&
        json_put_str(record, "id", i->id) && json_put_str(record, "digest", i->digest) &&
        put_layers(record, i) && put_layer_bytes(record, i) &&
        (!i->pinned || json_object_set_new(record, "pinned", json_true()) == 0) &&
        (i->pulled_for == NULL || json_object_set(record, "pulledFor", i->pulled_for) == 0) &&
        json_object_set_new(record, "sizeBytes", json_integer((json_int_t)i->size_bytes)) == 0 &&
        json_put_str(record, "created", i->created) && put_strings(record, "env", &i->env) &&
        put_strings(record, "entrypoint", &i->entrypoint) && put_strings(record, "cmd", &i->cmd) &&
        put_strings(record, "volumes", &i->volumes) && json_put_str(record, "user", i->user) &&
        json_put_str(record, "workingDir", i->working_dir) &&
        json_put_str(record, "stopSignal", i->stop_signal))
        return record;
    json_decref(record);
    return NULL;
}
