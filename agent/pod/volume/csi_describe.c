/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/csi_object.h"
#include "agent/pod/volume/csi_tokens.h"
#include "agent/pod/volume/csi_vol.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static const char set_up_failed[] = "MountVolume.SetUp failed";
static const char stage_failed[] = "MountVolume.MountDevice failed";
static const char wait_failed[] = "MountVolume.WaitForAttach failed";

void csi_described_done(struct csi_described *d)
{
    arena_done(&d->memory);
    for (size_t i = 0; i < CSI_SECRETS; i++)
        api_config_unref(d->secrets[i]);
    json_decref(d->context);
    csi_tokens_free(d->tokens);
    *d = (struct csi_described){ 0 };
}

static bool copy_pairs(const struct api_kvs *from, struct arena *m, struct csi_pairs *ret)
{
    struct csi_pair *pairs = arena_alloc(m, (from->n + 1) * sizeof(pairs[0]));

    if (pairs == NULL)
        return false;
    for (size_t i = 0; i < from->n; i++) {
        pairs[i].key = arena_strdup(m, from->v[i].key);
        pairs[i].value = arena_strdup(m, from->v[i].value);
        if (pairs[i].key == NULL || pairs[i].value == NULL)
            return false;
    }
    *ret = (struct csi_pairs){ pairs, from->n };
    return true;
}

/* ---- secrets ---- */

/* The values stay in the Secret, of which a reference is held. */
static enum err_code use_secret(struct csi_described *d, enum csi_secret which,
                                const struct api_config *secret, struct err *e)
{
    struct csi_pairs *const to[CSI_SECRETS] = { &d->volume.stage_secrets, &d->volume.publish_secrets,
                                                &d->volume.expand_secrets };
    struct csi_pair *pairs = arena_alloc(&d->memory, (secret->n_data + 1) * sizeof(pairs[0]));

    if (pairs == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < secret->n_data; i++) {
        const struct api_datum *datum = &secret->data[i];

        if (!utf8_is_valid(datum->data, datum->size) || memchr(datum->data, '\0', datum->size) != NULL)
            return err_set(e, ERR_INVALID,
                           "the value of %.100s in secret \"%s\" is not text, which drivers require",
                           datum->key, secret->meta.name);
        pairs[i] = (struct csi_pair){ datum->key, datum->data };
    }
    *to[which] = (struct csi_pairs){ pairs, secret->n_data };
    d->secrets[which] = api_config_ref((struct api_config *)secret);
    return ERR_OK;
}

static enum err_code find_secret(const struct pod *p, struct csi_described *d, enum csi_secret which,
                                 const char *namespace_, const char *name, struct err *e)
{
    static const char *const fields[] = { "NodeStageSecretRef", "NodePublishSecretRef",
                                          "NodeExpandSecretRef" };
    const struct api_config *secret;

    if (name == NULL || name[0] == '\0')
        return ERR_OK;
    if (namespace_ == NULL)
        namespace_ = p->api->meta.namespace;
    secret = src_store_config(p->node->o.store, p->api->origin, API_SECRET, namespace_, name);
    if (secret != NULL)
        return use_secret(d, which, secret, e);
    if (strcmp(namespace_, p->api->meta.namespace) == 0)
        ERR_IGNORE(pod_lacks_config(p, API_SECRET, name, false, e));
    else
        err_set(e, ERR_PRECONDITION, "secret \"%s\" not found", name);
    return err_wrap(
        e,
        "fetching %s %s/%s failed: kubernetes.io/csi: failed to find the secret %s in the namespace "
        "%s with error",
        fields[which], namespace_, name, name, namespace_);
}

/* ---- the CSIDriver ---- */

static enum err_code find_object(const struct pod *p, const char *driver, bool ephemeral,
                                 struct csi_object *ret, bool *ret_there, struct err *e)
{
    const struct api_generic *g =
        src_store_generic(p->node->o.store, p->api->origin, API_KIND_CSI_DRIVER, NULL, driver);

    *ret_there = g != NULL;
    if (g != NULL && csi_object_read(g, ret, e) != ERR_OK)
        return e->code;
    if (g == NULL && pod_is_new(p))
        return err_set(e, ERR_PRECONDITION, "CSIDriver \"%s\" is not known yet", driver);
    return csi_object_allows(g != NULL ? ret : NULL, driver, ephemeral, e);
}

/* ---- the attachment ---- */

static bool take_context(struct csi_described *d)
{
    struct csi_pair *pairs = arena_alloc(&d->memory, (json_object_size(d->context) + 1) * sizeof(pairs[0]));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (pairs == NULL)
        return false;
    json_object_foreach (d->context, key, value)
        if (json_is_string(value))
            pairs[n++] = (struct csi_pair){ key, json_string_value(value) };
    d->volume.publish_context = (struct csi_pairs){ pairs, n };
    return true;
}

static enum err_code find_attachment(struct csi_vol *v, struct csi_described *d, struct err *e)
{
    char name[CSI_HASHED_SIZE];
    const struct driver_attachment a = {
        .name = name, .driver = v->driver, .handle = v->handle, .volume = v->spec_name
    };

    if (!v->attaches)
        return ERR_OK;
    csi_attachment_name(v->handle, v->driver, v->pod->node->o.node_name, name);
    if (driver_attached(v->pod, &a, &d->context, e) != ERR_OK)
        return e->code;
    return take_context(d) ? ERR_OK : err_nomem(e);
}

/* ---- the volume ---- */

static enum err_code describe_pod(const struct csi_vol *v, const struct csi_object *object,
                                  struct csi_described *d, struct err *e)
{
    const struct pod *p = v->pod;
    const struct api_pod_security *s = &p->api->spec.security;
    const char *account = p->api->spec.service_account_name;
    struct csi_volume *to = &d->volume;
    struct arena *m = &d->memory;

    *to = (struct csi_volume){
        .driver = v->driver,
        .handle = v->handle,
        .spec_name = v->spec_name,
        .ephemeral = v->ephemeral,
        .block = v->block,
        .pod_uid = p->uid,
        .pod_name = arena_strdup(m, p->api->meta.name),
        .pod_namespace = arena_strdup(m, p->api->meta.namespace),
        .service_account = arena_strdup(m, account != NULL && account[0] != '\0' ? account : "default"),
        .pod_info = object->pod_info,
        .fs_group = s->has_fs_group ? s->fs_group : -1,
        .group_if_wrong = str_eq(s->fs_group_change_policy, "OnRootMismatch"),
        .group_policy = object->group_policy,
        .tokens_secret = object->tokens_secret,
    };
    return to->pod_name != NULL && to->pod_namespace != NULL && to->service_account != NULL ? ERR_OK
                                                                                            : err_nomem(e);
}

static enum err_code describe_inline(const struct csi_vol *v, const struct api_volume *api,
                                     struct csi_described *d, struct err *e)
{
    d->volume.read_only = api->csi_read_only;
    d->volume.fs_type = arena_strdup(&d->memory, api->csi_fs_type);
    if (!copy_pairs(&api->csi_attributes, &d->memory, &d->volume.attributes))
        return err_nomem(e);
    return find_secret(v->pod, d, CSI_SECRET_PUBLISH, NULL, api->csi_secret, e);
}

static unsigned modes_of(const struct api_strs *modes)
{
    static const struct {
        const char *name;
        unsigned bit;
    } known[] = { { "ReadWriteOnce", CSI_RWO },
                  { "ReadOnlyMany", CSI_ROX },
                  { "ReadWriteMany", CSI_RWX },
                  { "ReadWriteOncePod", CSI_RWOP } };
    unsigned ret = 0;

    for (size_t i = 0; i < modes->n; i++)
        for (size_t k = 0; k < ARRAY_LEN(known); k++)
            if (strcmp(modes->v[i], known[k].name) == 0)
                ret |= known[k].bit;
    return ret;
}

static bool copy_flags(const struct api_strs *from, struct csi_described *d)
{
    const char **flags = arena_alloc(&d->memory, (from->n + 1) * sizeof(flags[0]));

    if (flags == NULL)
        return false;
    for (size_t i = 0; i < from->n; i++)
        if ((flags[i] = arena_strdup(&d->memory, from->v[i])) == NULL)
            return false;
    d->volume.mount_flags = flags;
    d->volume.n_mount_flags = from->n;
    return true;
}

static enum err_code describe_pv(const struct csi_vol *v, const struct api_volume *api,
                                 const struct api_pv *pv, struct csi_described *d, struct err *e)
{
    const struct api_storage *s = &pv->storage;

    d->volume.read_only = api->claim_readonly;
    d->volume.fs_type = arena_strdup(&d->memory, s->fs_type);
    d->volume.access_modes = modes_of(&pv->access_modes);
    d->volume.expand_bytes = csi_wanted_bytes(v->pod, api);
    if (!copy_pairs(&s->opts, &d->memory, &d->volume.attributes) || !copy_flags(&pv->mount_options, d))
        return err_nomem(e);
    return ERR_OK;
}

static enum err_code find_secrets(const struct csi_vol *v, const struct api_storage *s,
                                  struct csi_described *d, const char **ret_what, struct err *e)
{
    const struct api_storage_secret *const refs[] = { &s->stage_secret, &s->publish_secret,
                                                      &s->expand_secret };

    for (size_t i = 0; i < CSI_SECRETS; i++) {
        if (find_secret(v->pod, d, (enum csi_secret)i, refs[i]->namespace_, refs[i]->name, e) == ERR_OK)
            continue;
        *ret_what = i == CSI_SECRET_STAGE ? stage_failed : set_up_failed;
        return e->code;
    }
    return ERR_OK;
}

static enum err_code describe_claim(struct csi_vol *v, const struct api_volume *api, struct csi_described *d,
                                    const char **ret_what, struct err *e)
{
    const struct api_generic *pv = csi_pv_of(v->pod, api);

    if (pv == NULL)
        return err_set(e, ERR_UNAVAILABLE, "PersistentVolume \"%.200s\" no longer exists", v->spec_name);
    if (strcmp(pv->meta.name, v->spec_name) != 0 || strcmp(pv->pv->storage.driver, v->driver) != 0 ||
        strcmp(pv->pv->storage.handle, v->handle) != 0)
        return err_set(e, ERR_PRECONDITION, "the claim is now bound to a different volume, \"%.200s\"",
                       pv->meta.name);
    *ret_what = wait_failed;
    if (find_attachment(v, d, e) != ERR_OK)
        return e->code;
    *ret_what = set_up_failed;
    if (describe_pv(v, api, pv->pv, d, e) != ERR_OK)
        return e->code;
    v->in_use = (d->volume.access_modes & CSI_RWOP) != 0 && csi_vol_is_elsewhere(v);
    if (v->in_use) /* kubelet's words */
        return err_set(e, ERR_EXISTS,
                       "volume uses the ReadWriteOncePod access mode and is already in use by another pod");
    return find_secrets(v, &pv->pv->storage, d, ret_what, e);
}

static void note_selinux(const struct csi_vol *v, const struct csi_object *object)
{
    if (object->selinux_mount && v->state == CSI_VOL_NONE && v->backoff_ms == 0)
        log_info("seLinuxMount of a CSIDriver has no effect: this node has no SELinux",
                 F_STR("driver", v->driver), F_STR("pod", v->pod->key), F_STR("volume", v->name));
}

enum err_code csi_describe(struct csi_vol *v, const struct api_volume *api, struct csi_described *ret,
                           const char **ret_what, struct err *e)
{
    struct csi_object object = { 0 };
    bool there = false;

    *ret_what = set_up_failed;
    if (find_object(v->pod, v->driver, v->ephemeral, &object, &there, e) != ERR_OK)
        return e->code;
    v->republishes = object.republish;
    v->attaches = !v->ephemeral && (!there || object.attach);
    note_selinux(v, &object);
    if (describe_pod(v, &object, ret, e) != ERR_OK)
        return e->code;
    if (v->ephemeral ? describe_inline(v, api, ret, e) != ERR_OK
                     : describe_claim(v, api, ret, ret_what, e) != ERR_OK)
        return e->code;
    if (csi_tokens_get(v->pod, &object, &ret->tokens, e) != ERR_OK)
        return e->code;
    ret->volume.tokens = ret->tokens;
    return ERR_OK;
}

uint64_t csi_wanted_bytes(const struct pod *p, const struct api_volume *api)
{
    struct driver_bound bound = { 0 };
    const struct quantity *size;

    if (api->kind != API_VOL_CLAIM || driver_bound(p, api, &bound, ERR_IGNORED) != ERR_OK ||
        bound.claim_bytes <= 0 || bound.volume == NULL || bound.volume->pv == NULL)
        return 0;
    size = api_resource_get(&bound.volume->pv->capacity, "storage");
    return size != NULL && quantity_value(size) > bound.claim_bytes ? (uint64_t)quantity_value(size) : 0;
}
