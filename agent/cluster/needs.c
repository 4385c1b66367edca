/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needs - the ConfigMaps, Secrets and ClusterTrustBundles to which pods of the apiserver refer: watched while
 * a pod refers to them. They are counted over all pods when a pod is added, changed or removed; a few hundred
 * pods with a few references each take well below a millisecond.
 */
#include "agent/cluster/internal.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

static const char *kind_text(enum api_config_kind kind)
{
    return kind == API_SECRET ? "Secret" : "ConfigMap";
}

static void need(struct cluster *c, enum api_config_kind kind, const char *namespace_, const char *name)
{
    char key[CLUSTER_KEY_SIZE];
    struct cluster_need *n;

    if (name == NULL || name[0] == '\0')
        return;
    snprintf(key, sizeof(key), "%s/%s/%s", kind_text(kind), namespace_, name);
    HASH_FIND_STR(c->needs, key, n);
    if (n == NULL) {
        n = calloc(1, sizeof(*n) + strlen(key) + 1);
        if (n == NULL)
            return; /* the next pod causes another count */
        strcpy(n->key, key);
        n->kind = kind;
        n->namespace_ = strdup(namespace_);
        n->name = strdup(name);
        if (n->namespace_ != NULL && n->name != NULL)
            HASH_ADD_STR(c->needs, key, n);
        if (n->hh.tbl == NULL) {
            free(n->namespace_);
            free(n->name);
            free(n);
            return;
        }
    }
    n->seen = c->count;
}

void needs_secret(struct cluster *c, const char *namespace_, const char *name)
{
    need(c, API_SECRET, namespace_, name);
}

static void needs_of_container(struct cluster *c, const char *namespace_, const struct api_container *ctr)
{
    for (size_t i = 0; i < ctr->n_env_from; i++) {
        need(c, API_CONFIG_MAP, namespace_, ctr->env_from[i].config_map_ref);
        need(c, API_SECRET, namespace_, ctr->env_from[i].secret_ref);
    }
    for (size_t i = 0; i < ctr->n_env; i++) {
        const struct api_env *e = &ctr->env[i];

        if (e->config_map_key_ref != NULL)
            need(c, API_CONFIG_MAP, namespace_, e->config_map_key_ref->name);
        if (e->secret_key_ref != NULL)
            need(c, API_SECRET, namespace_, e->secret_key_ref->name);
    }
}

static void needs_of_pod(struct cluster *c, const struct api_pod *api)
{
    const struct api_pod_spec *s = &api->spec;
    const char *namespace_ = api->meta.namespace;

    for (size_t i = 0; i < s->n_init_containers; i++)
        needs_of_container(c, namespace_, &s->init_containers[i]);
    for (size_t i = 0; i < s->n_containers; i++)
        needs_of_container(c, namespace_, &s->containers[i]);
    for (size_t i = 0; i < s->n_ephemeral_containers; i++)
        needs_of_container(c, namespace_, &s->ephemeral_containers[i]);
    for (size_t i = 0; i < s->n_image_pull_secrets; i++)
        need(c, API_SECRET, namespace_, s->image_pull_secrets[i].name);
    for (size_t i = 0; i < s->n_volumes; i++) {
        if (s->volumes[i].kind == API_VOL_CLAIM)
            storage_need_claim(c, api, &s->volumes[i]);
        if (s->volumes[i].csi_secret != NULL)
            need(c, API_SECRET, namespace_, s->volumes[i].csi_secret);
        for (size_t k = 0; k < s->volumes[i].n_sources; k++) {
            const struct api_payload_source *from = &s->volumes[i].sources[k];

            if (from->kind == API_SRC_CONFIG_MAP || from->kind == API_SRC_SECRET)
                need(c, from->kind == API_SRC_SECRET ? API_SECRET : API_CONFIG_MAP, namespace_, from->name);
            else if (from->kind == API_SRC_TRUST)
                trust_need(c, from);
        }
    }
}

static void need_free(struct cluster *c, struct cluster_need *n)
{
    HASH_DEL(c->needs, n);
    free(n->namespace_);
    free(n->name);
    free(n);
}

static bool need_tell(struct cluster *c, const struct cluster_need *n, const char *type)
{
    return cluster_send(c, json_pack("{s:s, s:s, s:s, s:s}", "type", type, "kind", kind_text(n->kind),
                                     "namespace", n->namespace_, "name", n->name));
}

void needs_count(struct cluster *c)
{
    struct cluster_need *n, *tmp;

    uint64_t namespaces = 0;

    c->count++;
    pods_each (c->o.node, p) {
        namespaces += siphash_part(0, p->api->meta.namespace, strlen(p->api->meta.namespace));
        if (p->api->origin == API_FROM_SERVER && (p->state != POD_TERMINATED || !pod_ask_idle(p)))
            needs_of_pod(c, p->api);
        if (p->successor != NULL && p->successor->origin == API_FROM_SERVER)
            needs_of_pod(c, p->successor);
    }
    HASH_ITER (hh, c->needs, n, tmp) {
        if (n->seen != c->count) {
            if (n->told)
                need_tell(c, n, "drop");
            src_store_forget(c->o.store, n->kind, n->namespace_, n->name);
            kept_drop(c->kept, n->key);
            need_free(c, n);
        } else if (!n->told) {
            n->told = need_tell(c, n, "need");
        }
    }
    trust_count(c);
    storage_count(c);
    if (namespaces != c->namespaces)
        services_changed(c); /* whose Services are kept */
    c->namespaces = namespaces;
}

void needs_untold(struct cluster *c)
{
    struct cluster_need *n, *tmp;

    HASH_ITER (hh, c->needs, n, tmp)
        n->told = false;
}

void needs_changed(struct cluster *c, const struct api_config *config)
{
    char key[CLUSTER_KEY_SIZE];
    const struct cluster_need *n;

    snprintf(key, sizeof(key), "%s/%s/%s", kind_text(config->kind), config->meta.namespace,
             config->meta.name);
    HASH_FIND_STR(c->needs, key, n);
    if (n != NULL)
        kept_changed(c->kept, key, n->kind == API_SECRET);
}

void needs_free(struct cluster *c)
{
    struct cluster_need *n, *tmp;

    HASH_ITER (hh, c->needs, n, tmp)
        need_free(c, n);
}
