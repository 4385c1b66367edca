/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_class - which OCI runtime a pod's containers get: the handler that its RuntimeClass names. It is
 * looked up when the sandbox is made, as in kubelet, and stays the same while the sandbox exists.
 * The pod's record has it, for a boot at which the cluster's classes are not known.
 *
 * A pod from the folder uses a RuntimeClass of the folder, otherwise one of the cluster, as kubelet's static
 * pods do. Without either, the name is that of a handler.
 */
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/runtime/container.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static const char *class_wanted(const struct pod *p)
{
    const char *name = p->api->spec.runtime_class_name;

    return name != NULL && name[0] != '\0' ? name : NULL;
}

/* Whether a RuntimeClass that the store does not have may still come. */
static bool may_come(const struct pod *p)
{
    const struct node_cluster *c = p->node->cluster;

    return (p->api->origin == API_FROM_FOLDER && pod_is_new(p)) ||
           (c != NULL && c->runtime_classes_known != NULL && !c->runtime_classes_known(c->arg));
}

static enum err_code find_handler(const struct pod *p, const char *name, const char **ret, struct err *e)
{
    const struct src_store *store = p->node->o.store;
    const struct api_runtime_class *class = src_store_runtime_class(store, p->api->origin, name);

    if (class == NULL && p->api->origin == API_FROM_FOLDER)
        class = src_store_runtime_class(store, API_FROM_SERVER, name);
    if (class != NULL)
        *ret = class->handler;
    else if (may_come(p) && sandbox_of(p)->handler[0] != '\0')
        *ret = sandbox_of(p)->handler; /* of its record; a class never gets another handler */
    else if (may_come(p))
        err_set(e, ERR_UNAVAILABLE, "RuntimeClass \"%s\" is not known yet", name);
    else if (p->api->origin == API_FROM_FOLDER && rt_handler_features(p->node->rt, name) != NULL)
        *ret = name;
    else /* the words of client-go, which kubelet passes on */
        err_set(e, ERR_NOT_FOUND, "runtimeclass.node.k8s.io \"%s\" not found", name);
    return e->code;
}

/* The checks of kubelet and containerd before they make a sandbox, in their words. */
static enum err_code check_handler(const struct pod *p, const char *handler, struct err *e)
{
    const struct rt_features *f = rt_handler_features(p->node->rt, handler);

    if (f == NULL)
        return err_set(e, ERR_NOT_FOUND, "failed to get sandbox runtime: " RT_NO_HANDLER, handler);
    if (handler[0] != '\0' && !api_pod_host_users(&p->api->spec) && !f->user_namespaces)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "can't set `spec.hostUsers: false`, RuntimeClass handler \"%s\" does not support user "
                       "namespaces",
                       handler);
    return ERR_OK;
}

enum err_code sandbox_choose_runtime(struct pod *p, struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    const char *name = class_wanted(p), *handler = "";

    if (name != NULL &&
        (find_handler(p, name, &handler, e) != ERR_OK || check_handler(p, handler, e) != ERR_OK))
        return e->code;
    if (strcmp(box->handler, handler) == 0)
        return ERR_OK;
    snprintf(box->handler, sizeof(box->handler), "%s", handler);
    p->record_dirty = true; /* no container is created before that is written */
    return ERR_OK;
}

const char *sandbox_runtime_handler(const struct pod *p)
{
    return sandbox_of(p)->handler;
}

const struct rt_features *sandbox_runtime_features(const struct pod *p)
{
    return p->node->rt != NULL ? rt_handler_features(p->node->rt, sandbox_of(p)->handler) : NULL;
}

void sandbox_runtime_classes_changed(struct node *n, const char *name)
{
    pods_each (n, p) {
        struct sandbox *box = sandbox_of(p);

        if (box->net != NET_NONE || class_wanted(p) == NULL ||
            (name != NULL && !str_eq(class_wanted(p), name)))
            continue;
        box->net_retry_at = CLOCK_BOOT_NONE;
        box->net_backoff_ms = 0;
        pod_wake(p, "RuntimeClasses changed");
    }
}
