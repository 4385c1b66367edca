/* SPDX-License-Identifier: Apache-2.0 */
/* object_json - objects of the store as JSON, for the status socket. A Secret is shown without its values:
 * clients only see its keys and the sizes of their values. The local API gets it whole. */
#include "agent/api/kept_meta.h"
#include "agent/pod/show/internal.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"

#include <string.h>

#define DATA_MAX (16u << 20) /* of base64: more than a manifest file may contain */

static json_t *put_kvs(const struct api_kvs *kvs)
{
    json_t *o = json_object();

    for (size_t i = 0; i < kvs->n; i++)
        json_put_str(o, kvs->v[i].key, kvs->v[i].value);
    return o;
}

/* Without annotations: kubectl's last-applied-configuration has everything that was applied. */
static json_t *secret_metadata(const struct api_meta *meta)
{
    json_t *o = json_object();

    json_put_str(o, "name", meta->name);
    json_put_str(o, "namespace", meta->namespace);
    json_put_str(o, "uid", meta->uid);
    if (meta->labels.n > 0)
        json_object_set_new(o, "labels", put_kvs(&meta->labels));
    return o;
}

static json_t *public_metadata(const struct api_meta *meta)
{
    json_t *o = secret_metadata(meta);

    if (meta->annotations.n > 0)
        json_object_set_new(o, "annotations", put_kvs(&meta->annotations));
    if (meta->generation != 0)
        json_object_set_new(o, "generation", json_integer((json_int_t)meta->generation));
    ERR_IGNORE(api_kept_meta_add(o, meta->kept));
    return o;
}

/* ---- ConfigMaps and Secrets ---- */

static void put_datum(json_t *data, json_t *binary, const struct api_datum *d)
{
    buf_auto text = BUF_INIT(DATA_MAX);
    json_t *value = d->binary ? NULL : json_stringn(d->data, d->size);

    if (value != NULL) {
        json_object_set_new(data, d->key, value);
        return;
    }
    base64_add(&text, d->data, d->size);
    if (!text.failed)
        json_put_str(binary, d->key, text.p);
}

static void put_data(json_t *o, const struct api_config *c)
{
    json_t *data = json_object(), *binary = json_object();

    for (size_t i = 0; i < c->n_data; i++)
        put_datum(data, binary, &c->data[i]);
    if (json_object_size(data) > 0)
        json_object_set(o, "data", data);
    if (json_object_size(binary) > 0)
        json_object_set(o, "binaryData", binary);
    json_decref(data);
    json_decref(binary);
}

json_t *object_config(const struct api_config *c, bool whole)
{
    json_t *o = json_object(), *sizes = json_object();

    json_put_str(o, "kind", c->kind == API_SECRET ? "Secret" : "ConfigMap");
    json_put_str(o, "apiVersion", "v1");
    json_object_set_new(o, "metadata",
                        c->kind == API_SECRET ? secret_metadata(&c->meta) : public_metadata(&c->meta));
    json_put_str(o, "type", c->type);
    if (c->immutable)
        json_object_set_new(o, "immutable", json_true());
    for (size_t i = 0; i < c->n_data; i++)
        json_object_set_new(sizes, c->data[i].key, json_integer((json_int_t)c->data[i].size));
    json_object_set_new(o, "sizes", sizes);
    if (whole && c->kind == API_CONFIG_MAP)
        put_data(o, c);
    return o;
}

json_t *object_priority_class(const struct api_priority_class *c)
{
    json_t *o =
        json_pack("{s:s, s:s, s:o, s:i}", "kind", "PriorityClass", "apiVersion", "scheduling.k8s.io/v1",
                  "metadata", public_metadata(&c->meta), "value", (int)c->value);

    if (c->global_default)
        json_object_set_new(o, "globalDefault", json_true());

    json_put_str(o, "preemptionPolicy", c->preemption_policy);
    json_put_str(o, "description", c->description);
    return o;
}

/* ---- whole, for the local API ---- */

static void put_secret_data(json_t *o, const struct api_config *c)
{
    json_t *data = json_object();

    for (size_t i = 0; i < c->n_data; i++) {
        struct buf text = BUF_INIT(DATA_MAX);

        base64_add(&text, c->data[i].data, c->data[i].size);
        if (!text.failed)
            json_put_str(data, c->data[i].key, text.p);
        buf_wipe(&text);
    }
    if (json_object_size(data) > 0)
        json_object_set(o, "data", data);
    json_decref(data);
}

json_t *object_config_whole(const struct api_config *c)
{
    json_t *o = json_object();

    json_put_str(o, "kind", c->kind == API_SECRET ? "Secret" : "ConfigMap");
    json_put_str(o, "apiVersion", "v1");
    json_object_set_new(o, "metadata", public_metadata(&c->meta));
    json_put_str(o, "type", c->type);
    if (c->immutable)
        json_object_set_new(o, "immutable", json_true());
    if (c->kind == API_SECRET)
        put_secret_data(o, c);
    else
        put_data(o, c);
    return o;
}

json_t *object_runtime_class(const struct api_runtime_class *c)
{
    json_t *o = json_pack("{s:s, s:s, s:o, s:s}", "kind", "RuntimeClass", "apiVersion", "node.k8s.io/v1",
                          "metadata", public_metadata(&c->meta), "handler", c->handler);

    return o;
}

json_t *object_whole(const struct api_object *o)
{
    json_t *found = NULL;

    switch (o->kind) {
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        return object_config_whole(o->config);
    case API_KIND_PRIORITY_CLASS:
        return object_priority_class(o->priority_class);
    case API_KIND_RUNTIME_CLASS:
        return object_runtime_class(o->runtime_class);
    case API_KIND_POD: /* shown with its status */
        return NULL;
    default:
        if (json_parse(o->generic->json, strlen(o->generic->json), SIZE_MAX, &found, "manifest",
                       ERR_IGNORED) != ERR_OK)
            return NULL;
        ERR_IGNORE(api_kept_meta_add(json_object_get(found, "metadata"), o->generic->meta.kept));
        return found;
    }
}
