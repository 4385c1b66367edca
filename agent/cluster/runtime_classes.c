/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_classes - the RuntimeClasses of the cluster: coracle-kube watches all of them, as kubelet does,
 * from the first pod on. They are in the store; this file records on which link each was received, so that
 * classes that were deleted while coracle-kube did not run are removed, too.
 */
#include "agent/cluster/internal.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static struct cluster_class *class_note(struct cluster *c, const char *name)
{
    struct cluster_class *v = NULL;

    HASH_FIND_STR(c->classes, name, v);
    if (v != NULL)
        return v;
    v = HASH_COUNT(c->classes) < CLUSTER_RUNTIME_CLASSES_MAX ? calloc(1, sizeof(*v) + strlen(name) + 1)
                                                             : NULL;
    if (v == NULL)
        return NULL;
    strcpy(v->name, name);
    HASH_ADD_STR(c->classes, name, v);
    if (v->hh.tbl != NULL)
        return v;
    free(v);
    return NULL;
}

static void runtime_classes_changed(struct cluster *c)
{
    if (c->classes_known)
        kept_changed(c->kept, KEEP_CLASSES, false);
}

static void class_drop(struct cluster *c, struct cluster_class *v)
{
    src_store_remove(c->o.store, API_FROM_SERVER, API_KIND_RUNTIME_CLASS, NULL, v->name);
    runtime_classes_changed(c);
    HASH_DEL(c->classes, v);
    free(v);
}

bool runtime_classes_put(struct cluster *c, const json_t *object)
{
    const char *name = json_str(json_object_get(object, "metadata"), "name");
    struct cluster_class *v = name != NULL && strlen(name) <= CLUSTER_NAME_MAX ? class_note(c, name) : NULL;

    if (v != NULL) {
        v->link = c->class_link;
        runtime_classes_changed(c);
        return true;
    }
    log_error("ignoring a RuntimeClass: there are too many, or its name is invalid",
              F_STR("name", name != NULL && strlen(name) <= CLUSTER_NAME_MAX ? name : "?"));
    return false;
}

void runtime_classes_gone(struct cluster *c, const char *name)
{
    struct cluster_class *v = NULL;

    HASH_FIND_STR(c->classes, name, v);
    if (v != NULL)
        class_drop(c, v);
}

void runtime_classes_synced(struct cluster *c)
{
    struct cluster_class *v, *next;

    HASH_ITER (hh, c->classes, v, next)
        if (v->link != c->class_link) /* deleted while coracle-kube did not run */
            class_drop(c, v);
    if (c->classes_known)
        return;
    c->classes_known = true;
    runtime_classes_changed(c);
    node_runtime_classes_known(c->o.node);
}

void runtime_classes_again(struct cluster *c)
{
    c->class_link++;
}

bool runtime_classes_are_known(void *cluster)
{
    return ((const struct cluster *)cluster)->classes_known;
}

/* ---- on the disk ---- */

json_t *runtime_classes_keep(const struct cluster *c)
{
    json_t *list = json_array();

    for (const struct cluster_class *v = c->classes; v != NULL; v = v->hh.next) {
        const struct api_runtime_class *class = src_store_runtime_class(c->o.store, API_FROM_SERVER, v->name);

        if (class != NULL)
            json_array_append_new(list, json_pack("{s:s, s:s, s:{s:s}, s:s}", "apiVersion", "node.k8s.io/v1",
                                                  "kind", "RuntimeClass", "metadata", "name", v->name,
                                                  "handler", class->handler));
    }
    if (c->classes_known)
        return json_pack("{s:o}", "classes", list);
    json_decref(list);
    return NULL;
}

void runtime_classes_use(struct cluster *c, const json_t *kept)
{
    json_t *v;
    size_t i;

    if (c->classes_known || c->classes_kept)
        return;
    c->classes_kept = true;
    c->class_link--; /* removed by the first set that does not have them */
    json_array_foreach (json_object_get(kept, "classes"), i, v) {
        const char *name = json_str(json_object_get(v, "metadata"), "name");

        /* otherwise the apiserver has just sent it */
        if (name != NULL && src_store_runtime_class(c->o.store, API_FROM_SERVER, name) == NULL)
            objects_put(c, v);
    }
    c->class_link++;
    log_info("the apiserver does not answer: using the kept RuntimeClasses",
             F_U64("classes", HASH_COUNT(c->classes)));
    node_runtime_classes_known(c->o.node);
}

void runtime_classes_free(struct cluster *c)
{
    struct cluster_class *v, *next;

    HASH_ITER (hh, c->classes, v, next) { /* the store is unchanged */
        HASH_DEL(c->classes, v);
        free(v);
    }
}
