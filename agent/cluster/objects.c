/* SPDX-License-Identifier: Apache-2.0 */
/* objects - moves the apiserver's objects into the store. */
#include "agent/cluster/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

/* Mirror pods have this annotation; a pod of the apiserver with it mirrors one of our static pods. */
#define MIRROR "kubernetes.io/config.mirror"

void objects_to_store(struct cluster *c, const json_t *object)
{
    struct api_object made;
    struct err e = { 0 };
    const char *name = json_str(json_object_get(object, "metadata"), "name");

    if (api_decode_served(object, &made, &e) != ERR_OK) {
        log_error("cannot use an object of the apiserver", F_STR("name", name != NULL ? name : "?"),
                  F_ERR(&e));
        return;
    }
    if (made.kind == API_KIND_POD && (made.pod->meta.uid == NULL || strlen(made.pod->meta.uid) > 63)) {
        log_error("cannot use a pod of the apiserver: it has no usable uid",
                  F_STR("name", made.pod->meta.name));
        api_object_unref(&made);
        return;
    }
    if (src_store_put(c->o.store, &made, &e) != ERR_OK)
        log_error("cannot store an object of the apiserver", F_STR("name", name != NULL ? name : "?"),
                  F_ERR(&e));
    if (made.kind == API_KIND_POD)
        reports_wake(c); /* its references are counted */
    else if (made.kind == API_KIND_CONFIG_MAP || made.kind == API_KIND_SECRET)
        needs_changed(c, made.config);
    api_object_unref(&made);
}

void objects_put(struct cluster *c, const json_t *object)
{
    const char *kind = json_str(object, "kind");
    const json_t *meta = json_object_get(object, "metadata");
    enum thing_kind thing;

    if (kind == NULL)
        return;
    if (storage_kind(kind, &thing))
        storage_put(c, thing, object);
    else if (strcmp(kind, "CSIDriver") == 0)
        csi_drivers_put(c, object);
    if (strcmp(kind, "Pod") == 0 && json_object_get(json_object_get(meta, "annotations"), MIRROR) != NULL)
        return;
    if (strcmp(kind, "Pod") == 0 || strcmp(kind, "ConfigMap") == 0 || strcmp(kind, "Secret") == 0)
        objects_to_store(c, object);
    else if (strcmp(kind, "RuntimeClass") == 0 && runtime_classes_put(c, object))
        objects_to_store(c, object);
    else if (strcmp(kind, "Node") == 0)
        own_node_put(c, object);
    else if (strcmp(kind, "Service") == 0)
        services_put(c, object);
    else if (strcmp(kind, "ClusterTrustBundle") == 0)
        trust_put(c, object);
}

static bool config_kind(const char *kind, enum api_config_kind *ret)
{
    *ret = str_eq(kind, "Secret") ? API_SECRET : API_CONFIG_MAP;
    return str_eq(kind, "Secret") || str_eq(kind, "ConfigMap");
}

void objects_gone(struct cluster *c, const json_t *message)
{
    const char *kind = json_str(message, "kind"), *name = json_str(message, "name"),
               *namespace_ = json_str(message, "namespace"), *uid = json_str(message, "uid");
    enum api_config_kind config;
    enum thing_kind thing;
    const struct api_pod *pod;

    if (storage_kind(kind, &thing))
        storage_gone(c, thing, namespace_, name);
    if (name != NULL && str_eq(kind, "CSIDriver"))
        csi_drivers_gone(c, name);
    if (name != NULL && str_eq(kind, "RuntimeClass"))
        runtime_classes_gone(c, name);
    if (name != NULL && str_eq(kind, "ClusterTrustBundle"))
        trust_gone(c, name);
    if (name == NULL || namespace_ == NULL)
        return;
    if (config_kind(kind, &config)) {
        src_store_lacks(c->o.store, config, namespace_, name, NULL);
        node_config_lacking(c->o.node, config == API_SECRET, namespace_, name);
        return;
    }
    if (str_eq(kind, "Service"))
        services_gone(c, namespace_, name);
    if (!str_eq(kind, "Pod"))
        return;
    pod = src_store_pod(c->o.store, API_FROM_SERVER, namespace_, name);
    if (pod != NULL && (uid == NULL || str_eq(pod->meta.uid, uid))) { /* not a later pod of the same name */
        src_store_remove(c->o.store, API_FROM_SERVER, API_KIND_POD, namespace_, name);
        reports_wake(c);
    }
}

void objects_synced(struct cluster *c, const json_t *message)
{
    const char *kind = json_str(message, "kind");

    if (str_eq(kind, "Service"))
        services_synced(c);
    if (str_eq(kind, "RuntimeClass"))
        runtime_classes_synced(c);
    if (str_eq(kind, "CSIDriver"))
        csi_drivers_synced(c);
    if (str_eq(kind, "ClusterTrustBundle"))
        trust_synced(c, message);
    if (!str_eq(kind, "Pod") || c->pods_synced)
        return;
    c->pods_synced = true;
    c->synced_at = clock_boot();
    reports_node(c);
    src_store_set_ready(c->o.store, API_FROM_SERVER);
    node_server_ready(c->o.node);
    keep_sweep(c);
}

void objects_denied(struct cluster *c, const json_t *message)
{
    const char *kind = json_str(message, "kind"), *name = json_str(message, "name"),
               *namespace_ = json_str(message, "namespace"), *why = json_str(message, "message");
    enum api_config_kind config;
    enum thing_kind thing;
    str_auto text = str_printf("the apiserver refuses it (%d): %.300s", (int)json_int(message, "code", 0),
                               why != NULL ? why : "");

    if (text != NULL && str_eq(kind, "ClusterTrustBundle"))
        trust_denied(c, message, text);
    if (why != NULL && storage_kind(kind, &thing))
        storage_denied(c, thing, namespace_, name, why);
    if (name == NULL || namespace_ == NULL || text == NULL)
        return;
    log_warn("the apiserver refuses an object that a pod needs", F_STR("kind", kind != NULL ? kind : "?"),
             F_STR("namespace", namespace_), F_STR("name", name), F_STR("why", text));
    if (!config_kind(kind, &config))
        return;
    src_store_lacks(c->o.store, config, namespace_, name, text);
    node_config_lacking(c->o.node, config == API_SECRET, namespace_, name);
}
