/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/payload.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/env/env.h"
#include "agent/pod/volume/tokens.h"
#include "base/clock.h"
#include "base/files/fs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TRUST_FILE_MAX ((size_t)12 << 20) /* 8 MiB of certificates, in base64 */
#define OVERLAPS_SHOWN 8                  /* paths in the text; the others are only counted */

struct files {
    struct payload *to;
    size_t cap;
    size_t now; /* the source being added */
};

static enum err_code pod_payload_add(struct files *f, const char *path, const void *data, size_t size,
                                     int32_t mode, struct err *e)
{
    struct payload *to = f->to;

    if (to->n_files == f->cap)
        return err_set(e, ERR_INTERNAL, "payload of a volume has more files than were counted");
    to->source[to->n_files] = f->now;
    to->files[to->n_files++] =
        (struct vol_file){ .path = path, .data = data, .size = size, .mode = (mode_t)mode };
    return ERR_OK;
}

/* Data that only an API server has, in a pod of a lone node: its file is absent. */
static bool has_no_maker(const struct pod *p, const struct api_payload_source *s)
{
    return s->kind == API_SRC_CERTIFICATE || ((s->kind == API_SRC_TOKEN || s->kind == API_SRC_TRUST) &&
                                              p->api->origin == API_FROM_FOLDER && p->node->cluster == NULL);
}

static size_t pod_payload_count(const struct pod *p, const struct api_payload_source *s)
{
    const struct api_config *c;

    if (s->kind == API_SRC_DOWNWARD)
        return s->n_downward;
    if (s->kind >= API_SRC_TOKEN)
        return 1;
    c = src_store_config(p->node->o.store, p->api->origin,
                         s->kind == API_SRC_SECRET ? API_SECRET : API_CONFIG_MAP, p->api->meta.namespace,
                         s->name);
    return s->n_items > 0 ? s->n_items : c != NULL ? c->n_data : 0;
}

static enum err_code pod_payload_add_config(const struct pod *p, const struct api_payload_source *s,
                                            int32_t default_mode, struct files *f, struct err *e)
{
    bool secret = s->kind == API_SRC_SECRET;
    struct api_config *c =
        src_store_config(p->node->o.store, p->api->origin, secret ? API_SECRET : API_CONFIG_MAP,
                         p->api->meta.namespace, s->name);

    if (c == NULL)
        return pod_lacks_config(p, secret ? API_SECRET : API_CONFIG_MAP, s->name, s->optional, e);
    f->to->configs[f->to->n_configs++] = api_config_ref(c);
    if (s->n_items == 0) {
        for (size_t i = 0; i < c->n_data; i++)
            if (pod_payload_add(f, c->data[i].key, c->data[i].data, c->data[i].size, default_mode, e) !=
                ERR_OK)
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
        if (pod_payload_add(f, item->path, d->data, d->size, item->mode >= 0 ? item->mode : default_mode,
                            e) != ERR_OK)
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
        if (code != ERR_OK || pod_payload_add(f, item->path, text, strlen(text),
                                              item->mode >= 0 ? item->mode : default_mode, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code add_token(const struct pod *p, const struct api_payload_source *s, int32_t default_mode,
                               struct arena *a, struct files *f, struct err *e)
{
    const struct pod_tokens *tokens = p->node->o.tokens;
    const char *account = p->api->spec.service_account_name;
    struct pod_token_request r = {
        .namespace_ = p->api->meta.namespace,
        .service_account = account != NULL && account[0] != '\0' ? account : "default",
        .pod_name = p->api->meta.name,
        .pod_uid = p->uid,
        .audience = s->token_audience,
        .expiration_seconds = s->token_expiration_seconds,
    };
    struct pod_token t = { 0 };
    struct boot_time renew;
    unsigned char chance = 0;
    struct vol_file *file;
    char *text;

    if (tokens == NULL)
        return err_set(e, ERR_PRECONDITION,
                       "failed to fetch token: service account tokens need an API server, and there is none");
    if (tokens->get(tokens->arg, &r, &t, e) != ERR_OK)
        return err_wrap(e, "failed to fetch token");
    text = arena_strndup(a, t.text, t.size); /* it is only lent until the loop turns */
    if (text == NULL)
        return err_nomem(e);
    f->to->tokens[f->to->n_tokens++] = text;
    if (pod_payload_add(f, s->path, text, t.size, default_mode, e) != ERR_OK)
        return e->code;
    /* Readable only by its users: the owner, or the group added by fsGroup. */
    file = &f->to->files[f->to->n_files - 1];
    file->has_owner = pod_token_owner(p->api, &file->owner);
    if (file->has_owner || p->api->spec.security.has_fs_group)
        file->mode = 0600;
    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
        chance = 0;
    renew = pod_token_renew_at(t.expires_ns, r.expiration_seconds, chance % POD_TOKEN_JITTER_S);
    if (!clock_boot_is_set(f->to->renew_at) || clock_boot_is_before(renew, f->to->renew_at))
        f->to->renew_at = renew;
    return ERR_OK;
}

static enum err_code add_trust(const struct pod *p, const struct api_payload_source *s, int32_t default_mode,
                               struct arena *a, struct files *f, struct err *e)
{
    const struct node_cluster *c = p->node->cluster;
    buf_auto pem = BUF_INIT(TRUST_FILE_MAX);
    struct vol_file *file;
    char *text;

    if (c == NULL || c->trust == NULL)
        return err_set(e, ERR_PRECONDITION, "ClusterTrustBundles need an API server, and there is none");
    if (c->trust(s, p->uid, &pem, e, c->arg) != ERR_OK)
        return e->code;
    text = arena_strndup(a, pem.p, pem.n);
    if (text == NULL)
        return err_nomem(e);
    if (pod_payload_add(f, s->path, text, pem.n, default_mode, e) != ERR_OK)
        return e->code;
    /* As kubelet: readable only by its users, like a token. */
    file = &f->to->files[f->to->n_files - 1];
    file->has_owner = pod_token_owner(p->api, &file->owner);
    if (file->has_owner || p->api->spec.security.has_fs_group)
        file->mode = 0600;
    return ERR_OK;
}

static enum err_code add_source(const struct pod *p, const struct api_payload_source *s, int32_t default_mode,
                                struct arena *a, struct files *f, struct err *e)
{
    if (has_no_maker(p, s))
        return ERR_OK;
    switch (s->kind) {
    case API_SRC_CONFIG_MAP:
    case API_SRC_SECRET:
        return pod_payload_add_config(p, s, default_mode, f, e);
    case API_SRC_DOWNWARD:
        return add_downward(p, s, default_mode, a, f, e);
    case API_SRC_TOKEN:
        return add_token(p, s, default_mode, a, f, e);
    case API_SRC_TRUST:
        return add_trust(p, s, default_mode, a, f, e);
    case API_SRC_CERTIFICATE:
        break;
    }
    return ERR_OK;
}

/* ---- paths that several sources give ---- */

struct path {
    const char *text; /* without empty and "." elements, as used by the writer */
    size_t file;      /* its index in files */
};

static int pod_payload_path_order(const void *a, const void *b)
{
    const struct path *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order != 0 ? order : (x->file > y->file) - (x->file < y->file);
}

static void add_source_name(struct buf *b, const struct api_volume *v, size_t source)
{
    static const char *const kinds[] = { "configMap", "secret", "downwardAPI", "serviceAccountToken",
                                         "clusterTrustBundle" };
    const struct api_payload_source *s = &v->sources[source];

    buf_adds(b, kinds[s->kind]);
    if (s->name != NULL)
        buf_addf(b, " \"%s\"", s->name);
    if (v->projected)
        buf_addf(b, " (sources[%zu])", source);
}

static void add_overlap(struct buf *b, const struct api_volume *v, const struct payload *f,
                        const struct path *hidden, const struct path *shown)
{
    size_t from = f->source[hidden->file], to = f->source[shown->file];

    buf_addf(b, "%s\"%.256s\" of ", b->n > 0 ? "; " : "", shown->text);
    add_source_name(b, v, from);
    buf_adds(b, " is hidden by ");
    if (from == to) {
        buf_adds(b, "a later item of it");
        return;
    }
    add_source_name(b, v, to);
}

static bool may_overlap(const struct api_volume *v)
{
    return v->n_sources > 1 ||
           (v->n_sources == 1 && (v->sources[0].n_items > 1 || v->sources[0].n_downward > 1));
}

enum err_code payload_find_overlaps(const struct api_volume *v, const struct payload *made, struct arena *a,
                                    char **ret, struct err *e)
{
    buf_auto text = BUF_INIT(16 * 1024);
    struct path *paths;
    size_t found = 0;

    *ret = NULL;
    if (!may_overlap(v))
        return ERR_OK;
    paths = arena_alloc(a, (made->n_files + 1) * sizeof(*paths));
    if (paths == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < made->n_files; i++) {
        char *copy = arena_strdup(a, made->files[i].path);
        if (copy == NULL)
            return err_nomem(e);
        paths[i] = (struct path){ .text = fs_path_clean(copy), .file = i };
    }
    if (made->n_files > 1)
        qsort(paths, made->n_files, sizeof(*paths), pod_payload_path_order);
    for (size_t i = 1; i < made->n_files; i++)
        if (strcmp(paths[i - 1].text, paths[i].text) == 0 && ++found <= OVERLAPS_SHOWN)
            add_overlap(&text, v, made, &paths[i - 1], &paths[i]);
    if (found == 0)
        return ERR_OK;
    if (found > OVERLAPS_SHOWN)
        buf_addf(&text, "; and %zu more", found - OVERLAPS_SHOWN);
    *ret = text.failed ? NULL : arena_strndup(a, text.p, text.n);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

void payload_done(struct payload *made)
{
    for (size_t i = 0; i < made->n_configs; i++)
        api_config_unref(made->configs[i]);
    for (size_t i = 0; i < made->n_tokens; i++)
        explicit_bzero(made->tokens[i], strlen(made->tokens[i]));
    made->n_configs = made->n_tokens = 0;
}

static enum err_code add_all(const struct pod *p, const struct api_volume *v, struct arena *a,
                             struct files *f, struct err *e)
{
    buf_auto why = BUF_INIT(sizeof(e->text)); /* list everything missing at once, like kubelet */
    size_t n_failed = 0;

    for (size_t i = 0; i < v->n_sources; i++) {
        struct err one = { 0 };
        f->now = i;
        if (add_source(p, &v->sources[i], v->default_mode, a, f, &one) == ERR_OK)
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
    return ERR_OK;
}

enum err_code payload_build(const struct pod *p, const struct api_volume *v, struct arena *a,
                            struct payload *ret, struct err *e)
{
    struct payload made = { 0 };
    struct files f = { .to = &made };

    for (size_t i = 0; i < v->n_sources; i++)
        f.cap += pod_payload_count(p, &v->sources[i]);
    made.files = arena_alloc(a, (f.cap + 1) * sizeof(*made.files));
    made.source = arena_alloc(a, (f.cap + 1) * sizeof(*made.source));
    made.configs = arena_alloc(a, (v->n_sources + 1) * sizeof(struct api_config *));
    made.tokens = arena_alloc(a, (v->n_sources + 1) * sizeof(char *));
    if (made.files == NULL || made.source == NULL || made.configs == NULL || made.tokens == NULL)
        return err_nomem(e);
    if (add_all(p, v, a, &f, e) != ERR_OK) {
        payload_done(&made);
        return e->code;
    }
    *ret = made;
    return ERR_OK;
}
