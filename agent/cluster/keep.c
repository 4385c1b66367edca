/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep - copies on disk (agent/kept) of the objects that pods of this node need, for a start without the
 * apiserver: ConfigMaps, Secrets, tokens, claims with their volumes and ClusterTrustBundles to which they
 * refer, Services of their namespaces, RuntimeClasses, CSIDrivers, labels and taints of the node.
 *
 * A copy may be old, and a container keeps the environment of its start. So copies are used only when the
 * apiserver is known not to answer, has not answered KEEP_WAIT_MS after the start, or has not sent an object
 * KEEP_LATE_MS after the request. A later answer replaces the copy. The copy of a deleted object is kept
 * while a pod refers to it: a server that lost its data must not prevent pods from starting.
 */
#include "agent/cluster/internal.h"
#include "agent/kept/kept.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

#define CREDS "/usr/bin/systemd-creds"
#define TEXT_MAX ((size_t)12 << 20)
#define OBJECT_MAX ((size_t)16 << 20)

/* ---- ConfigMaps and Secrets ---- */

static bool datum_add(json_t *data, json_t *binary, const struct api_config *config,
                      const struct api_datum *d)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    bool ok;

    if (config->kind == API_CONFIG_MAP && !d->binary)
        return json_object_set_new(data, d->key, json_stringn(d->data, d->size)) == 0;
    base64_add(&text, d->data, d->size);
    ok = !text.failed && json_object_set_new(config->kind == API_SECRET ? data : binary, d->key,
                                             json_stringn(text.p, text.n)) == 0;
    buf_wipe(&text);
    return ok;
}

/* The object in the form that api_decode_served() reads. NULL: out of memory. */
static json_t *config_object(const struct api_config *c)
{
    json_t *data = json_object(), *binary = json_object();
    json_t *o =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:s*}, s:o, s:o}", "apiVersion", "v1", "kind",
                  c->kind == API_SECRET ? "Secret" : "ConfigMap", "metadata", "namespace", c->meta.namespace,
                  "name", c->meta.name, "uid", c->meta.uid, "data", data, "binaryData", binary);
    bool ok = o != NULL;

    for (size_t i = 0; i < c->n_data && ok; i++)
        ok = datum_add(data, binary, c, &c->data[i]);
    if (ok && json_object_size(binary) == 0)
        json_object_del(o, "binaryData");
    if (ok && c->immutable)
        json_object_set_new(o, "immutable", json_true());
    if (ok)
        json_put_str(o, "type", c->type);
    if (ok)
        return o;
    if (o != NULL)
        api_json_wipe(o);
    json_decref(o);
    return NULL;
}

static struct cluster_need *keep_need(const struct cluster *c, const char *name)
{
    struct cluster_need *n;

    HASH_FIND_STR(c->needs, name, n);
    return n;
}

static bool need_is_unknown(const struct cluster *c, const struct cluster_need *n)
{
    return presence_is_unknown(
        src_store_look_config(c->o.store, API_FROM_SERVER, n->kind, n->namespace_, n->name, ERR_IGNORED));
}

static json_t *config_text(const struct cluster *c, const char *name)
{
    const struct cluster_need *n = keep_need(c, name);
    const struct api_config *config =
        n != NULL ? src_store_config(c->o.store, API_FROM_SERVER, n->kind, n->namespace_, n->name) : NULL;

    return config != NULL ? config_object(config) : NULL;
}

static void config_use(struct cluster *c, const char *name, bool sealed, const json_t *object)
{
    const struct cluster_need *n = keep_need(c, name);
    struct api_object made;
    struct err e = { 0 };

    if (n == NULL || !need_is_unknown(c, n) || (n->kind == API_SECRET && !sealed))
        return;
    if (api_decode_served(object, &made, &e) != ERR_OK) {
        log_error("cannot use a kept object", F_STR("object", name), F_ERR(&e));
        return;
    }
    if ((made.kind == API_KIND_SECRET || made.kind == API_KIND_CONFIG_MAP) && made.config->kind == n->kind &&
        str_eq(made.config->meta.name, n->name) && str_eq(made.config->meta.namespace, n->namespace_)) {
        log_info("no answer of the apiserver about an object: its kept content is used",
                 F_STR("object", name));
        if (src_store_put(c->o.store, &made, &e) != ERR_OK)
            log_error("cannot use a kept object", F_STR("object", name), F_ERR(&e));
    }
    api_object_unref(&made);
}

/* ---- conversion ---- */

static bool keep_content(const char *name, struct buf *ret, void *cluster)
{
    struct cluster *c = cluster;
    json_t *o = NULL;
    bool ok;

    if (str_starts(name, "Token/"))
        o = tokens_keep(c, name);
    else if (strcmp(name, KEEP_SERVICES) == 0)
        o = services_keep(c);
    else if (strcmp(name, KEEP_NODE) == 0)
        o = own_node_keep(c);
    else if (strcmp(name, KEEP_TRUST) == 0)
        o = trust_keep(c);
    else if (strcmp(name, KEEP_CLASSES) == 0)
        o = runtime_classes_keep(c);
    else if (strcmp(name, KEEP_DRIVERS) == 0)
        o = csi_drivers_keep(c);
    else if (storage_is_needed(c, name))
        o = storage_keep(c, name);
    else
        o = config_text(c, name);
    if (o == NULL)
        return false;
    json_add_text(ret, o, false, 0);
    ok = !ret->failed;
    api_json_wipe(o);
    json_decref(o);
    return ok;
}

static void keep_on_object(const char *name, bool sealed, const char *text, size_t n, void *cluster)
{
    struct cluster *c = cluster;
    json_t *o = NULL;
    struct err e = { 0 };

    if (!c->keep_use || c->closing) {
        c->keep_skipped = true;
        return;
    }
    if (json_parse(text, n, OBJECT_MAX, &o, name, &e) != ERR_OK) {
        log_error("cannot use a kept object", F_STR("object", name), F_ERR(&e));
        return;
    }
    if (str_starts(name, "Token/") && sealed)
        tokens_use(c, name, o);
    else if (strcmp(name, KEEP_SERVICES) == 0)
        services_use(c, o);
    else if (strcmp(name, KEEP_NODE) == 0)
        own_node_use(c, o);
    else if (strcmp(name, KEEP_TRUST) == 0)
        trust_use(c, o);
    else if (strcmp(name, KEEP_CLASSES) == 0)
        runtime_classes_use(c, o);
    else if (strcmp(name, KEEP_DRIVERS) == 0)
        csi_drivers_use(c, o);
    else if (!storage_use(c, name, o))
        config_use(c, name, sealed, o);
    api_json_wipe(o);
    json_decref(o);
}

static void keep_on_loaded(void *cluster)
{
    struct cluster *c = cluster;

    c->keep_loaded = true;
    if (c->keep_use && !c->keep_skipped && !c->closing)
        own_node_settle(c);
    c->keep_skipped = false;
}

/* ---- use of the copies ---- */

static bool keep_is_wanting(const struct cluster *c)
{
    const struct cluster_need *n;

    for (n = c->needs; n != NULL; n = n->hh.next)
        if (need_is_unknown(c, n))
            return true;
    return (!c->services_known && c->services_kept.n == 0) || (!c->classes_known && !c->classes_kept) ||
           (!c->drivers_known && !c->drivers_kept) || storage_wanting(c) || tokens_wanting(c) ||
           trust_wanting(c) || own_node_may_come(c);
}

static void keep_load(struct cluster *c, bool use)
{
    needs_count(c);
    c->keep_use = use;
    if (!c->keep_loaded || (use && keep_is_wanting(c)))
        kept_load(c->kept);
}

static void keep_on_late(uv_timer_t *timer)
{
    struct cluster *c = timer->data;

    keep_load(c, true);
    if (own_node_may_come(c)) /* the next `state` may end this use early */
        uv_timer_start(timer, keep_on_late, KEEP_LATE_MS, 0);
}

static void keep_on_wait(uv_timer_t *timer)
{
    struct cluster *c = timer->data;

    if (!json_flag(c->state, "connected"))
        keep_load(c, true);
    uv_timer_start(timer, keep_on_late, KEEP_LATE_MS - KEEP_WAIT_MS, 0);
}

void keep_state(struct cluster *c)
{
    const char *error = json_str(c->state, "error");

    if (c->closing)
        return;
    if (json_flag(c->state, "connected"))
        keep_load(c, false);
    else if (error != NULL && error[0] != '\0')
        keep_load(c, true);
}

/* ---- copies that are no longer needed ---- */

static bool keep_is_wanted(const char *name, void *cluster)
{
    const struct cluster *c = cluster;
    const char *uid = name + strlen("Token/");
    char text[POD_KEY_SIZE];

    if (strcmp(name, KEEP_SERVICES) == 0 || strcmp(name, KEEP_NODE) == 0 || strcmp(name, KEEP_CLASSES) == 0 ||
        strcmp(name, KEEP_DRIVERS) == 0 || storage_is_needed(c, name))
        return true;
    if (strcmp(name, KEEP_TRUST) == 0)
        return c->trust_wants != NULL;
    if (!str_starts(name, "Token/"))
        return keep_need(c, name) != NULL;
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(uid, "/"), uid);
    return pods_by_uid(c->o.node, text) != NULL;
}

void keep_sweep(struct cluster *c)
{
    needs_count(c);
    kept_sweep(c->kept, keep_is_wanted);
}

json_t *keep_explain(void *cluster)
{
    const struct cluster *c = cluster;

    return kept_explain(c->kept);
}

/* ---- life ---- */

enum err_code keep_open(struct cluster *c, struct err *e)
{
    const struct node *n = c->o.node;
    struct kept_options o = { .loop = c->o.loop,
                              .program = c->o.seal_program,
                              .systemd_creds = CREDS,
                              .cgroup_fd = -1,
                              .on_object = keep_on_object,
                              .on_loaded = keep_on_loaded,
                              .content = keep_content,
                              .arg = c };

    c->keep_dir = str_printf("%s/kept", n->o.state_dir);
    if (c->keep_dir == NULL)
        return err_nomem(e);
    o.dir = c->keep_dir;
    if (n->o.cgroups != NULL) {
        o.cgroup_fd = cg_leaf_fd(n->o.cgroups, CG_LEAF_OPS);
        o.cgroup_procs = cg_leaf_procs(n->o.cgroups, CG_LEAF_OPS);
    }
    if (kept_open(&c->kept, &o, e) != ERR_OK)
        return e->code;
    uv_timer_init(c->o.loop, &c->keep_timer);
    c->keep_timer.data = c;
    c->open_handles++;
    uv_timer_start(&c->keep_timer, keep_on_wait, KEEP_WAIT_MS, 0);
    return ERR_OK;
}

static void keep_on_closed(uv_handle_t *handle)
{
    struct cluster *c = handle->data;

    c->open_handles--;
}

void keep_close(struct cluster *c)
{
    uv_close((uv_handle_t *)&c->keep_timer, keep_on_closed);
    kept_close(c->kept);
}

void keep_free(struct cluster *c)
{
    kept_free(c->kept);
    free(c->keep_dir);
}
