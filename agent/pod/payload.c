#include "agent/pod/payload.h"
#include "agent/pod/env.h"

#include <string.h>

struct files {
    struct vol_file *v;
    size_t n, cap;
};

static enum err_code add(struct files *f, const char *path, const void *data, size_t size, int32_t mode,
                         struct err *e)
{
    if (f->n == f->cap)
        return err_set(e, ERR_INTERNAL, "payload of a volume has more files than were counted");
    f->v[f->n++] = (struct vol_file){ .path = path, .data = data, .size = size, .mode = (mode_t)mode };
    return ERR_OK;
}

static size_t count(const struct pod *p, const struct api_payload_source *s)
{
    const struct api_config *c;

    if (s->kind == API_SRC_DOWNWARD)
        return s->n_downward;
    if (s->kind == API_SRC_TOKEN)
        return 1;
    c = src_store_config(p->node->o.store, s->kind == API_SRC_SECRET ? API_SECRET : API_CONFIG_MAP,
                         p->api->meta.namespace, s->name);
    return s->n_items > 0 ? s->n_items : c != NULL ? c->n_data : 0;
}

static enum err_code add_config(const struct pod *p, const struct api_payload_source *s, int32_t default_mode,
                                struct files *f, struct err *e)
{
    bool secret = s->kind == API_SRC_SECRET;
    const struct api_config *c = src_store_config(p->node->o.store, secret ? API_SECRET : API_CONFIG_MAP,
                                                  p->api->meta.namespace, s->name);

    if (c == NULL)
        return s->optional ? ERR_OK
                           : err_set(e, ERR_PRECONDITION, "%s \"%s\" not found",
                                     secret ? "secret" : "configmap", s->name);
    if (s->n_items == 0) {
        for (size_t i = 0; i < c->n_data; i++)
            if (add(f, c->data[i].key, c->data[i].data, c->data[i].size, default_mode, e) != ERR_OK)
                return e->code;
        return ERR_OK;
    }
    for (size_t i = 0; i < s->n_items; i++) {
        const struct api_item *item = &s->items[i];
        const struct api_datum *d = api_config_get(c, item->key);
        if (d == NULL) {
            if (s->optional)
                continue;
            return err_set(e, ERR_PRECONDITION, "%s: %s",
                           secret ? "references non-existent secret key"
                                  : "configmap references non-existent config key",
                           item->key);
        }
        if (add(f, item->path, d->data, d->size, item->mode >= 0 ? item->mode : default_mode, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code add_downward(const struct pod *p, const struct api_payload_source *s,
                                  int32_t default_mode, struct arena *a, struct files *f, struct err *e)
{
    for (size_t i = 0; i < s->n_downward; i++) {
        const struct api_downward_item *item = &s->downward[i];
        char *text = NULL;
        enum err_code code = item->field_ref != NULL
                                 ? env_field(p, item->field_ref->field_path, a, &text, e)
                                 : env_resource(p, NULL, item->resource_field_ref, a, &text, e);
        if (code != ERR_OK ||
            add(f, item->path, text, strlen(text), item->mode >= 0 ? item->mode : default_mode, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code add_source(const struct pod *p, const struct api_payload_source *s, int32_t default_mode,
                                struct arena *a, struct files *f, struct err *e)
{
    switch (s->kind) {
    case API_SRC_CONFIG_MAP:
    case API_SRC_SECRET:
        return add_config(p, s, default_mode, f, e);
    case API_SRC_DOWNWARD:
        return add_downward(p, s, default_mode, a, f, e);
    case API_SRC_TOKEN:
        break;
    }
    return err_set(e, ERR_PRECONDITION, "a service account token needs an apiserver");
}

enum err_code payload_build(const struct pod *p, const struct api_volume *v, struct arena *a,
                            struct vol_file **ret, size_t *ret_n, struct err *e)
{
    struct files f = { 0 };
    buf_auto why = BUF_INIT(sizeof(e->text)); /* all that is missing at once, as kubelet lists it */
    size_t n_failed = 0;

    for (size_t i = 0; i < v->n_sources; i++)
        f.cap += count(p, &v->sources[i]);
    f.v = arena_alloc(a, (f.cap + 1) * sizeof(*f.v));
    if (f.v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < v->n_sources; i++) {
        struct err one = { 0 };
        if (add_source(p, &v->sources[i], v->default_mode, a, &f, &one) == ERR_OK)
            continue;
        if (one.code != ERR_PRECONDITION) {
            *e = one;
            return e->code;
        }
        buf_addf(&why, "%s%s", n_failed++ > 0 ? ", " : "", one.text);
    }
    if (n_failed == 1)
        return err_set(e, ERR_PRECONDITION, "%s", why.p);
    if (n_failed > 1)
        return err_set(e, ERR_PRECONDITION, "[%s]", why.p);
    *ret = f.v;
    *ret_n = f.n;
    return ERR_OK;
}
