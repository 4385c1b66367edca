/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_classes - the RuntimeClasses of the cluster: coracle-kube follows all of them, as kubelet does,
 * from the first pod on. They are in the store; here is noted on which link each was put, so that what went
 * while coracle-kube did not run goes here as well.
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

static void class_drop(struct cluster *c, struct cluster_class *v)
{
    src_store_remove(c->o.store, API_FROM_SERVER, API_KIND_RUNTIME_CLASS, NULL, v->name);
    HASH_DEL(c->classes, v);
    free(v);
}

bool runtime_classes_put(struct cluster *c, const json_t *object)
{
    const char *name = json_str(json_object_get(object, "metadata"), "name");
    struct cluster_class *v = name != NULL && strlen(name) <= CLUSTER_NAME_MAX ? class_note(c, name) : NULL;

    if (v != NULL) {
        v->link = c->class_link;
        return true;
    }
    log_error("cannot keep a RuntimeClass: there are too many, or its name cannot be used",
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
        if (v->link != c->class_link) /* it went while coracle-kube did not run */
            class_drop(c, v);
    if (c->classes_known)
        return;
    c->classes_known = true;
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

void runtime_classes_free(struct cluster *c)
{
    struct cluster_class *v, *next;

    HASH_ITER (hh, c->classes, v, next) { /* the store stays as it is */
        HASH_DEL(c->classes, v);
        free(v);
    }
}
