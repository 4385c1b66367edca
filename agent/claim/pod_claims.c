/* SPDX-License-Identifier: Apache-2.0 */
/* pod_claims - the claims of pods: taking one, its place on the disk, its growth (claim_link.h). */
#include "agent/claim/internal.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static enum err_code make_ephemeral(struct claims *c, const struct pod *p, const struct api_volume *v,
                                    const char *name, struct err *e)
{
    json_auto_t *pod = json_loads(p->api->json, 0, NULL);
    const json_t *template_ =
        json_at(json_named(json_at(pod, "spec.volumes"), v->name), "ephemeral.volumeClaimTemplate");

    if (template_ == NULL)
        return err_set(e, ERR_INTERNAL, "volume \"%s\" has no volumeClaimTemplate", v->name);
    if (claims_make(c, p->api->meta.namespace, name, template_, p->uid, e) != ERR_OK)
        return e->code;
    claim_find(c, p->api->meta.namespace, name)->of_pod = true;
    return claim_record_save(c, claim_find(c, p->api->meta.namespace, name), e);
}

/* The claim of a volume, which exists in the store. */
static enum err_code claim_of(struct claims *c, struct pod *p, const struct api_volume *v, const char *name,
                              struct claim **ret, struct err *e)
{
    const char *namespace_ = p->api->meta.namespace;
    struct claim *one = claim_find(c, namespace_, name);

    if (one == NULL && v->ephemeral &&
        src_store_generic(c->store, API_FROM_FOLDER, API_KIND_CLAIM, namespace_, name) == NULL) {
        if (make_ephemeral(c, p, v, name, e) != ERR_OK)
            return e->code;
        one = claim_find(c, namespace_, name);
    }
    if (v->ephemeral && (one == NULL || !one->of_pod || !str_eq(one->owner, p->uid)))
        return err_set(e, ERR_PRECONDITION, "PVC %s/%s was not created for pod %s (pod is not owner)",
                       namespace_, name, p->key);
    if (one == NULL)
        return err_set(e, ERR_PRECONDITION, "persistentvolumeclaim \"%s\" not found", name);
    *ret = one;
    return ERR_OK;
}

static enum err_code make_folder(const struct claim *one, struct err *e)
{
    /* All users may write, as in an emptyDir, because containers run as various users. */
    if (one->pv == NULL && fs_mkdirs(one->own_path, 0777, e) != ERR_OK)
        return err_wrap(e, "claim %s", one->key);
    return ERR_OK;
}

/* kubelet's text, from operation_generator.go. */
static enum err_code check_node(const struct claims *c, const struct claim *one, struct err *e)
{
    if (one->pv == NULL || claim_is_of_node(c->o.node, one->pv->pv))
        return ERR_OK;
    return err_set(e, ERR_PRECONDITION,
                   "NodeAffinity check failed for volume \"%.253s\" : no matching NodeSelectorTerms",
                   one->volume);
}

static bool is_csi(const struct claim *one)
{
    return one->pv != NULL && one->pv->pv->storage.kind == API_STORAGE_CSI;
}

static enum err_code take(struct pod *p, const struct api_volume *v, void *arg, struct err *e)
{
    struct claims *c = arg;
    const struct api_generic *g;
    const struct pod *other;
    struct claim *one = NULL;
    char name[256];

    if (p->api->origin != API_FROM_FOLDER)
        return err_set(e, ERR_PRECONDITION, "claims of the cluster need a storage driver");
    claim_name(p, v, name, sizeof(name));
    if (claim_of(c, p, v, name, &one, e) != ERR_OK)
        return e->code;
    g = claim_object(c, one);
    if (g == NULL) /* an earlier pod keeps using the claim */
        return one->volume != NULL && !clock_boot_is_set(p->seen_at)
                   ? make_folder(one, e)
                   : err_set(e, ERR_PRECONDITION, "persistentvolumeclaim \"%s\" not found", name);
    if (one->volume == NULL && claim_bind(c, one, g, one->made != NULL || !pod_is_new(p), e) != ERR_OK)
        return e->code == ERR_PRECONDITION ? err_wrap(e, "persistentvolumeclaim \"%s\" is not bound", name)
                                           : e->code;
    if (claim_deleted_at(g) != NULL && clock_boot_is_set(p->seen_at))
        return err_set(e, ERR_PRECONDITION, "persistentvolumeclaim \"%s\": PVC is being deleted", name);
    if (check_node(c, one, e) != ERR_OK)
        return e->code;
    /* The set-up of a CSI volume handles the change of users: the volume stays staged from one pod to the
     * next. */
    other = claim_is_for_one_pod(g->claim) && !is_csi(one) ? claim_user(c, one, p) : NULL;
    if (other != NULL)
        return err_set(
            e, ERR_PRECONDITION,
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access "
            "mode: claim \"%s\", pod %s",
            name, other->key);
    return make_folder(one, e);
}

static enum err_code place(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                           void *arg, struct err *e)
{
    struct quantity size = { 0 };
    const struct claim *one;
    char name[256];

    claim_name(p, v, name, sizeof(name));
    one = claim_find(arg, p->api->meta.namespace, name);
    if (one == NULL || one->volume == NULL)
        return err_set(e, ERR_NOT_FOUND, "persistentvolumeclaim \"%s\" is not bound", name);
    if (quantity_parse(one->size, &size, e) != ERR_OK)
        return e->code;
    *ret = (struct claim_place){ .volume = one->pv,
                                 .read_only = v->claim_readonly,
                                 .bytes = (uint64_t)quantity_value(&size) };
    if (one->pv == NULL)
        ret->path = one->own_path;
    else
        claim_place_of(one->pv, ret);
    return ERR_OK;
}

static void grown(const struct pod *p, const struct api_volume *v, uint64_t bytes, void *arg)
{
    struct claims *c = arg;
    struct claim *one;
    char name[256], text[QUANTITY_TEXT_SIZE], *size;
    struct err e = { 0 };

    claim_name(p, v, name, sizeof(name));
    one = claim_find(c, p->api->meta.namespace, name);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
    size = one != NULL ? strdup(text) : NULL;
    if (size == NULL)
        return;
    free(one->size);
    one->size = size;
    if (claim_record_save(c, one, &e) !=
        ERR_OK) /* after a restart the volume is expanded again, which is harmless */
        log_warn("cannot record the size of a claim", F_STR("claim", one->key), F_ERR(&e));
}

struct node_claims claim_functions(struct claims *c)
{
    return (struct node_claims){ .take = take, .place = place, .grown = grown, .arg = c };
}
