/* SPDX-License-Identifier: Apache-2.0 */
/* Objects other than pods, for the status socket: finding them, and lists. object_json.c makes them JSON. */
#include "agent/pod/core/events.h"
#include "agent/pod/image/images.h"
#include "agent/pod/show/devices.h"
#include "agent/pod/show/internal.h"
#include "agent/pod/show/node_object.h"
#include "agent/pod/show/provider.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

#define NODE_IMAGES_MAX 50 /* in its status: kubelet's nodeStatusMaxImages */

/* ---- one of them ---- */

static json_t *one_config(struct node *n, enum api_config_kind kind, const char *namespace_, const char *name,
                          bool whole)
{
    const struct api_config *c = src_store_config(n->o.store, API_FROM_FOLDER, kind, namespace_, name);

    return c != NULL ? object_config(c, whole) : NULL;
}

static json_t *one_class(struct node *n, const char *name)
{
    const struct api_priority_class *c = src_store_priority_class(n->o.store, name);

    return c != NULL ? object_priority_class(c) : NULL;
}

/* ---- the node, images ---- */

json_t *provider_node(struct node *n)
{
    bool ready = false;
    json_auto_t *checks = show_node(n)->provider.ready(n, &ready);
    buf_auto why = BUF_INIT(64 * 1024);
    const json_t *check;
    size_t i;

    json_array_foreach (json_object_get(checks, "checks"), i, check) {
        const char *message = json_str(check, "message");

        if (!json_is_true(json_object_get(check, "ok")))
            buf_addf(&why, "%s%s", why.n > 0 ? "; " : "", message != NULL ? message : "");
    }
    return node_object(n, ready ? NULL : why.p);
}

json_t *provider_node_complete(struct node *n, int64_t max_images, int64_t port)
{
    json_t *o = provider_node(n);

    if (o != NULL)
        node_object_complete(n, o, max_images, port);
    return o;
}

/* With the pods that use them. */
static json_t *all_images(struct node *n)
{
    json_t *all = img_list(n->o.images), *item;
    size_t i;

    json_array_foreach (all, i, item)
        json_object_set_new(item, "usedBy", image_users(n, json_str(item, "id")));
    return all;
}

static json_t *one_image(struct node *n, const char *name)
{
    struct img_image *image = img_lookup(n->o.images, name);
    json_auto_t *all = all_images(n);
    json_t *item, *found = NULL;
    size_t i;

    json_array_foreach (all, i, item) {
        const char *id = json_str(item, "id");

        if (image != NULL ? str_eq(id, image->id) : str_eq(id, name))
            found = json_incref(item);
    }
    img_unref(image);
    return found;
}

/* ---- whole, for the local API ---- */

json_t *provider_whole(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                       struct err *e)
{
    struct node *n = arg;
    const struct api_config *config;
    const struct api_runtime_class *class;

    switch (kind) {
    case KIND_CONFIG_MAP:
    case KIND_SECRET:
        config = src_store_config(n->o.store, API_FROM_FOLDER,
                                  kind == KIND_SECRET ? API_SECRET : API_CONFIG_MAP, namespace_, name);
        if (config != NULL)
            return object_config_whole(config);
        break;
    case KIND_NODE: /* the one that there is */
        return provider_node_complete(n, NODE_IMAGES_MAX, 0);
    case KIND_RUNTIME_CLASS:
        class = src_store_runtime_class(n->o.store, API_FROM_FOLDER, name);
        if (class != NULL)
            return object_runtime_class(class);
        break;
    default:
        return provider_listed(arg, kind, namespace_, name, e);
    }
    err_set(e, ERR_NOT_FOUND, "\"%.253s\" not found", name);
    return NULL;
}

enum status_kind provider_status_kind(enum api_kind kind)
{
    switch (kind) {
    case API_KIND_CONFIG_MAP:
        return KIND_CONFIG_MAP;
    case API_KIND_SECRET:
        return KIND_SECRET;
    case API_KIND_PRIORITY_CLASS:
        return KIND_PRIORITY_CLASS;
    case API_KIND_RUNTIME_CLASS:
        return KIND_RUNTIME_CLASS;
    case API_KIND_POD:
        return KIND_POD;
    default:
        return (enum status_kind)(KIND_GENERIC + (int)kind);
    }
}

/* Of the folder, with its status. */
static json_t *generic_object(struct node *n, enum status_kind kind, const char *namespace_, const char *name,
                              struct err *e)
{
    if (n->workloads != NULL)
        return n->workloads->object((enum api_kind)(kind - KIND_GENERIC), namespace_, name, n->workloads->arg,
                                    e);
    err_set(e, ERR_NOT_FOUND, "\"%.253s\" not found", name);
    return NULL;
}

/* Changes of pods are reported by the pods themselves. */
void provider_on_store(enum src_change change, const struct api_object *object, void *arg)
{
    struct node *n = arg;
    json_t *o;

    if (n->server == NULL || !status_server_is_fed(n->server) || object->kind == API_KIND_POD ||
        api_object_origin(object) == API_FROM_SERVER)
        return;
    /* Of a workload with its status; one that is gone has none any more. */
    o = api_kind_is_generic(object->kind) && change != SRC_REMOVED && n->workloads != NULL
            ? n->workloads->object(object->kind, api_object_meta(object)->namespace,
                                   api_object_meta(object)->name, n->workloads->arg, ERR_IGNORED)
            : object_whole(object);
    if (o == NULL)
        return;
    status_server_object_event(n->server, provider_status_kind(object->kind),
                               change == SRC_ADDED     ? "ADDED"
                               : change == SRC_UPDATED ? "MODIFIED"
                                                       : "DELETED",
                               o);
    if (object->kind == API_KIND_SECRET)
        api_json_wipe(o);
    json_decref(o);
}

/* ---- all of them ---- */

static json_t *provider_objects_find_one(struct node *n, enum status_kind kind, const char *namespace_,
                                         const char *name)
{
    switch (kind) {
    case KIND_NODE:
        return str_eq(name, n->o.node_name) ? provider_node(n) : NULL;
    case KIND_CONFIG_MAP:
        return one_config(n, API_CONFIG_MAP, namespace_, name, true);
    case KIND_SECRET:
        return one_config(n, API_SECRET, namespace_, name, true);
    case KIND_PRIORITY_CLASS:
        return one_class(n, name);
    case KIND_IMAGE:
        return one_image(n, name);
    case KIND_GENERIC:
    case KIND_POD:
    case KIND_EVENT:         /* have separate functions */
    case KIND_RUNTIME_CLASS: /* not on the socket */
    case KIND_DEVICE:
    case KIND_DEVICE_HELD:
        break;
    }
    return NULL;
}

json_t *provider_objects(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                         struct err *e)
{
    json_t *found;

    if (kind > KIND_GENERIC)
        return generic_object(arg, kind, namespace_, name, e);
    if (name != NULL)
        found = provider_objects_find_one(arg, kind, namespace_, name);
    else
        found = kind == KIND_IMAGE ? all_images(arg) : json_pack("[o]", provider_node(arg));
    if (found == NULL && name != NULL)
        err_set(e, ERR_NOT_FOUND, "\"%.253s\" not found", name);
    else if (found == NULL)
        err_nomem(e);
    return found;
}

/* ---- lists ---- */

struct names {
    json_t *list;
    bool failed;
};

static void provider_objects_add_name(const struct api_object *o, void *arg)
{
    const struct api_meta *meta = api_object_meta(o);
    struct names *names = arg;

    if (o->kind != API_KIND_POD && api_object_origin(o) == API_FROM_SERVER)
        return; /* the cluster's are shown by the cluster */
    json_t *key = json_sprintf("%s/%s", meta->namespace != NULL ? meta->namespace : "", meta->name);

    names->failed = json_array_append_new(names->list, key) != 0 || names->failed;
}

static json_t *names_of(struct node *n, enum api_kind kind)
{
    struct names names = { .list = json_array() };

    src_store_each(n->o.store, kind, provider_objects_add_name, &names);
    if (!names.failed)
        return names.list;
    json_decref(names.list);
    return NULL;
}

static json_t *names_of_pods(struct node *n)
{
    struct names names = { .list = json_array() };

    pods_each (n, p)
        names.failed = json_array_append_new(names.list, json_string(p->key)) != 0 || names.failed;
    if (!names.failed)
        return names.list;
    json_decref(names.list);
    return NULL;
}

json_t *provider_keys(void *arg, enum status_kind kind, struct err *e)
{
    json_t *found = NULL;

    if (kind > KIND_GENERIC) {
        found = names_of(arg, (enum api_kind)(kind - KIND_GENERIC));
        if (found == NULL)
            err_nomem(e);
        return found;
    }
    switch (kind) {
    case KIND_POD:
        found = names_of_pods(arg);
        break;
    case KIND_EVENT:
        found = events_keys(arg);
        break;
    case KIND_CONFIG_MAP:
        found = names_of(arg, API_KIND_CONFIG_MAP);
        break;
    case KIND_SECRET:
        found = names_of(arg, API_KIND_SECRET);
        break;
    case KIND_PRIORITY_CLASS:
        found = names_of(arg, API_KIND_PRIORITY_CLASS);
        break;
    case KIND_RUNTIME_CLASS:
        found = names_of(arg, API_KIND_RUNTIME_CLASS);
        break;
    case KIND_DEVICE:
    case KIND_DEVICE_HELD:
        found = devices_keys(arg, kind == KIND_DEVICE_HELD);
        break;
    case KIND_NODE:
    case KIND_IMAGE:
    case KIND_GENERIC:
        err_set(e, ERR_UNIMPLEMENTED, "not listed in pieces");
        return NULL;
    }
    if (found == NULL)
        err_nomem(e);
    return found;
}

json_t *provider_listed(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                        struct err *e)
{
    struct node *n = arg;
    json_t *found = NULL;

    if (kind > KIND_GENERIC)
        return generic_object(n, kind, namespace_, name, e);
    switch (kind) {
        break;
    case KIND_POD:
        return show_node(n)->provider.pod(n, namespace_, name, e);
    case KIND_EVENT:
        found = events_find_json(n, name);
        break;
    case KIND_CONFIG_MAP:
        found = one_config(n, API_CONFIG_MAP, namespace_, name, false);
        break;
    case KIND_SECRET:
        found = one_config(n, API_SECRET, namespace_, name, false);
        break;
    case KIND_DEVICE:
    case KIND_DEVICE_HELD:
        found = device_json(n, name);
        break;
    case KIND_PRIORITY_CLASS:
    case KIND_RUNTIME_CLASS:
    case KIND_GENERIC:
    case KIND_NODE:
    case KIND_IMAGE:
        found = provider_objects_find_one(n, kind, namespace_, name);
        break;
    }
    if (found == NULL)
        err_set(e, ERR_NOT_FOUND, "\"%.253s\" not found", name);
    return found;
}
