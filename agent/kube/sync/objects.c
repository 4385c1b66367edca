/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/objects.h"

#include "agent/kube/sync/followed.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

#define TRUST_GROUP "/apis/certificates.k8s.io/"

static const struct object_kind kinds[] = {
    { "ConfigMap", "/api/v1", "configmaps", true, OBJECT_WATCHED },
    { "Secret", "/api/v1", "secrets", true, OBJECT_WATCHED },
    { "ServiceAccount", "/api/v1", "serviceaccounts", true, OBJECT_READ },
    { "PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", true, OBJECT_READ },
    { "PersistentVolume", "/api/v1", "persistentvolumes", false, OBJECT_READ },
    { "VolumeAttachment", "/apis/storage.k8s.io/v1", "volumeattachments", false, OBJECT_READ },
    { "ClusterTrustBundle", TRUST_GROUP "v1beta1", "clustertrustbundles", false, OBJECT_CHOSEN },
    { "Service", "/api/v1", "services", false /* of all namespaces */, OBJECT_WHOLE },
    { "RuntimeClass", "/apis/node.k8s.io/v1", "runtimeclasses", false, OBJECT_WHOLE },
    { "CSIDriver", "/apis/storage.k8s.io/v1", "csidrivers", false, OBJECT_WHOLE },
    { "PriorityClass", NULL, NULL, false, OBJECT_REFUSED },
    { "Namespace", NULL, NULL, false, OBJECT_REFUSED },
};

const struct object_kind *object_kind_of(const char *kind)
{
    for (size_t i = 0; kind != NULL && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return &kinds[i];
    return NULL;
}

char *object_path(const struct object_kind *k, const char *namespace_, const char *name)
{
    str_auto prefix = NULL;

    if (!k->namespaced)
        return sync_path(k->prefix, k->plural, name, SYNC_PATH_END);
    prefix = str_printf("%s/namespaces", k->prefix);
    return prefix != NULL ? sync_path(prefix, namespace_, k->plural, name, SYNC_PATH_END) : NULL;
}

/* ---- needs ---- */

static char *objects_key(const struct object_kind *k, const char *namespace_, const char *name,
                         const char *signer)
{
    if (signer != NULL)
        return str_printf("%s/of signer/%s", k->kind, signer);
    return str_printf("%s/%s/%s", k->kind, k->namespaced && namespace_ != NULL ? namespace_ : "",
                      k->how != OBJECT_WHOLE && name != NULL ? name : "");
}

static void objects_need(struct objects_part *p, const struct object_kind *k, const char *namespace_,
                         const char *name, const char *signer)
{
    str_auto key = objects_key(k, namespace_, name, signer);
    struct followed *f = NULL;

    if (key != NULL)
        HASH_FIND_STR(p->all, key, f);
    if (f == NULL && key != NULL && HASH_COUNT(p->all) < OBJECTS_MAX)
        f = followed_new(p, key, k, k->namespaced ? namespace_ : NULL, k->how != OBJECT_WHOLE ? name : NULL,
                         signer);
    if (f == NULL) {
        objects_deny(p->sync, k->kind, namespace_, name, 429, "pods of this node refer to too many objects");
        return;
    }
    f->needs++;
    followed_begin(f);
}

void objects_part_need(struct objects_part *p, const json_t *message)
{
    const char *kind = json_str(message, "kind"), *namespace_ = json_str(message, "namespace"),
               *name = json_str(message, "name"), *signer = json_str(message, "signer");
    const struct object_kind *k = object_kind_of(kind);

    if (kind == NULL)
        return;
    if (k == NULL || k->how != OBJECT_CHOSEN)
        signer = NULL;
    if (k == NULL || k->how == OBJECT_REFUSED)
        objects_deny(p->sync, kind, namespace_, name, 403, "a node may not read objects of this kind");
    else if ((k->namespaced && namespace_ == NULL) ||
             (k->how != OBJECT_WHOLE && name == NULL && signer == NULL))
        objects_deny(p->sync, kind, namespace_, name, 400, "no namespace or no name is given");
    else
        objects_need(p, k, namespace_, name, signer);
}

void objects_part_look(struct objects_part *p, const json_t *message)
{
    const struct object_kind *k = object_kind_of(json_str(message, "kind"));
    str_auto key =
        k != NULL ? objects_key(k, json_str(message, "namespace"), json_str(message, "name"), NULL) : NULL;
    struct followed *f = NULL;

    if (key != NULL)
        HASH_FIND_STR(p->all, key, f);
    if (f != NULL && k->how == OBJECT_READ && p->started)
        followed_read(f);
}

void objects_part_drop(struct objects_part *p, const json_t *message)
{
    const struct object_kind *k = object_kind_of(json_str(message, "kind"));
    str_auto key = k != NULL ? objects_key(k, json_str(message, "namespace"), json_str(message, "name"),
                                           json_str(message, "signer"))
                             : NULL;
    struct followed *f = NULL;

    if (key != NULL)
        HASH_FIND_STR(p->all, key, f);
    if (f != NULL && --f->needs == 0)
        followed_end(p, f);
}

void objects_part_pods(struct objects_part *p)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds) && !p->whole; i++)
        if (kinds[i].how == OBJECT_WHOLE)
            objects_need(p, &kinds[i], NULL, NULL, NULL);
    p->whole = true;
}

/* ---- the part ---- */

struct objects_part *objects_part_new(struct kube_sync *s)
{
    struct objects_part *p = calloc(1, sizeof(*p));

    if (p != NULL)
        p->sync = s;
    return p;
}

void objects_part_start(struct objects_part *p)
{
    struct followed *f, *next;

    if (p->started)
        return;
    p->started = true;
    HASH_ITER (hh, p->all, f, next)
        followed_begin(f);
}

void objects_part_stop(struct objects_part *p)
{
    struct followed *f, *next;

    p->started = false;
    HASH_ITER (hh, p->all, f, next)
        followed_end(p, f);
}

void objects_part_free(struct objects_part *p)
{
    free(p);
}
