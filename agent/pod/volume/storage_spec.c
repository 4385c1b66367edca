/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/storage_spec.h"

#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/storage_place.h"
#include "base/utf8.h"
#include "volumes/storage/run.h"

#include <string.h>

bool storage_source_of(const struct pod *p, const struct api_volume *v, struct storage_source *ret)
{
    struct claim_place at;

    if (v->kind == API_VOL_STORAGE) {
        *ret = (struct storage_source){ .storage = v->storage, .name = v->name };
        return true;
    }
    if (v->kind != API_VOL_CLAIM || claim_place(p, v, &at, ERR_IGNORED) != ERR_OK || at.path != NULL ||
        at.volume->pv->storage.kind == API_STORAGE_CSI ||
        (at.block && !api_storage_has_devices(at.volume->pv->storage.kind)))
        return false;
    *ret = (struct storage_source){ .storage = &at.volume->pv->storage,
                                    .pv = at.volume->pv,
                                    .name = at.volume->meta.name,
                                    .read_only = at.read_only,
                                    .block = at.block };
    return true;
}

/* ---- Secrets ---- */

static enum err_code find_secret(const struct pod *p, const struct storage_source *s, const char *type,
                                 const struct api_config **ret, struct err *e)
{
    const char *name = s->storage->secret.name, *namespace_ = s->storage->secret.namespace_;

    *ret = NULL;
    if (name == NULL || name[0] == '\0')
        return ERR_OK;
    if (namespace_ == NULL)
        namespace_ = p->api->meta.namespace;
    *ret = src_store_config(p->node->o.store, p->api->origin, API_SECRET, namespace_, name);
    if (*ret == NULL) {
        ERR_IGNORE(pod_lacks_config(p, API_SECRET, name, false, e));
        return err_wrap(e, "couldn't get secret %s/%s", namespace_, name);
    }
    if (type != NULL && !str_eq((*ret)->type, type)) /* kubelet's words */
        return err_set(e, ERR_INVALID, "cannot get secret of type %s", type);
    return ERR_OK;
}

static enum err_code chap_secrets(const struct api_config *secret, struct arena *m, struct storage_spec *ret,
                                  struct err *e)
{
    struct storage_pair *pairs;

    if (secret == NULL)
        return ERR_OK;
    pairs = arena_alloc(m, (secret->n_data + 1) * sizeof(pairs[0]));
    if (pairs == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < secret->n_data; i++) {
        const struct api_datum *d = &secret->data[i];

        if (!utf8_is_valid(d->data, d->size) || memchr(d->data, '\0', d->size) != NULL)
            return err_set(e, ERR_INVALID, "the value of %.100s in secret \"%s\" is not text", d->key,
                           secret->meta.name);
        pairs[i] = (struct storage_pair){ d->key, d->data }; /* NUL-terminated in the store */
    }
    ret->secrets = pairs;
    ret->n_secrets = secret->n_data;
    return ERR_OK;
}

/* ---- mounts of the node ---- */

static enum storage_kind kind_of(enum api_storage_kind kind)
{
    switch (kind) {
    case API_STORAGE_ISCSI:
        return STORAGE_ISCSI;
    case API_STORAGE_FC:
        return STORAGE_FC;
    case API_STORAGE_LOCAL:
        return STORAGE_LOCAL;
    case API_STORAGE_NONE:
    case API_STORAGE_HOST_PATH:
    case API_STORAGE_NFS:
    case API_STORAGE_FLEX:
    case API_STORAGE_CSI:
        break;
    }
    return STORAGE_NFS;
}

static enum err_code make_spec(const struct pod *p, const struct storage_source *s, struct arena *m,
                               struct storage_job *ret, struct err *e)
{
    const struct api_storage *a = s->storage;
    const struct api_pod_security *security = &p->api->spec.security;
    const struct api_strs *portals = a->kind == API_STORAGE_FC ? &a->wwns : &a->portals;
    const struct api_config *secret;

    ret->spec = (struct storage_spec){
        .kind = kind_of(a->kind),
        .root = p->node->o.root_dir,
        .name = s->name,
        .target = ret->target,
        .pod_uid = p->uid,
        .block = s->block,
        .read_only = a->read_only || s->read_only,
        .options = s->pv != NULL ? (const char *const *)s->pv->mount_options.v : NULL,
        .n_options = s->pv != NULL ? s->pv->mount_options.n : 0,
        .fs_type = a->fs_type,
        .fs_group = security->has_fs_group && a->kind != API_STORAGE_NFS ? security->fs_group : -1,
        .group_if_wrong = str_eq(security->fs_group_change_policy, "OnRootMismatch"),
        .path = a->path,
        .server = a->server,
        .portal = a->portal,
        .iqn = a->iqn,
        .interface = a->interface,
        .initiator = a->initiator,
        .portals = (const char *const *)portals->v,
        .n_portals = portals->n,
        .wwids = (const char *const *)a->wwids.v,
        .n_wwids = a->wwids.n,
        .lun = a->lun,
        .chap_discovery = a->chap_discovery,
        .chap_session = a->chap_session,
    };
    if (find_secret(p, s, NULL, &secret, e) != ERR_OK)
        return e->code;
    return chap_secrets(secret, m, &ret->spec, e);
}

/* ---- FlexVolumes ---- */

static bool copy_options(const struct api_kvs *from, struct arena *m, struct flex_volume *ret)
{
    struct flex_pair *pairs = arena_alloc(m, (from->n + 1) * sizeof(pairs[0]));

    for (size_t i = 0; pairs != NULL && i < from->n; i++)
        pairs[i] = (struct flex_pair){ from->v[i].key, from->v[i].value };
    ret->opts = pairs;
    ret->n_opts = from->n;
    return pairs != NULL;
}

static bool copy_secrets(const struct api_config *secret, struct arena *m, struct flex_volume *ret)
{
    struct flex_secret *v;

    if (secret == NULL)
        return true;
    v = arena_alloc(m, (secret->n_data + 1) * sizeof(v[0]));
    for (size_t i = 0; v != NULL && i < secret->n_data; i++)
        v[i] = (struct flex_secret){ secret->data[i].key, secret->data[i].data, secret->data[i].size };
    ret->secrets = v;
    ret->n_secrets = secret->n_data;
    return v != NULL;
}

/* One that is mounted already needs no answer of the apiserver: the agent was started again. */
static enum err_code find_attached(const struct pod *p, const char *driver, const char *volume,
                                   struct storage_job *ret, struct err *e)
{
    bool mounted = false;

    if (!flex_attach_name(driver, volume, ret->attach_name, sizeof(ret->attach_name)))
        return err_set(e, ERR_INVALID, "the name of the FlexVolume driver is too long");
    if (driver_device(p, ret->attach_name, ret->device, sizeof(ret->device), e) != ERR_UNAVAILABLE ||
        storage_is_mounted(ret->target, &mounted, ERR_IGNORED) != ERR_OK || !mounted)
        return e->code;
    *e = (struct err){ 0 };
    return ERR_OK;
}

static enum err_code make_flex(const struct pod *p, const struct storage_source *s,
                               struct flex_drivers *drivers, struct arena *m, struct storage_job *ret,
                               struct err *e)
{
    const struct api_pod_security *security = &p->api->spec.security;
    const char *account = p->api->spec.service_account_name;
    const struct api_storage *a = s->storage;
    const struct api_config *secret;
    struct flex_driver driver;

    if (s->pv != NULL && s->pv->mount_options.n > 0)
        return err_set(e, ERR_INVALID, "Mount options are not supported for this volume type");
    if (drivers == NULL)
        return err_set(e, ERR_NOT_FOUND, "FlexVolume drivers cannot be served");
    if (flex_drivers_find(drivers, a->driver, &driver, e) != ERR_OK ||
        find_secret(p, s, a->driver, &secret, e) != ERR_OK)
        return e->code;
    if (driver.caps.attach && driver_is_attached_for(p) &&
        find_attached(p, a->driver, s->name, ret, e) != ERR_OK)
        return e->code;
    ret->is_flex = true;
    ret->flex = (struct flex_volume){
        .program = driver.program,
        .dir_name = driver.dir_name,
        .caps = driver.caps,
        .root = p->node->o.root_dir,
        .node = p->node->o.node_name,
        .name = s->name,
        .target = ret->target,
        .fs_type = a->fs_type,
        .read_only = s->pv != NULL ? s->read_only : a->read_only,
        .pod_name = p->api->meta.name,
        .pod_namespace = p->api->meta.namespace,
        .pod_uid = p->uid,
        .service_account = account != NULL && account[0] != '\0' ? account : "default",
        .fs_group = security->has_fs_group ? security->fs_group : -1,
        .group_if_wrong = str_eq(security->fs_group_change_policy, "OnRootMismatch"),
        .device = ret->attach_name[0] != '\0' ? ret->device : NULL,
    };
    return copy_options(&a->opts, m, &ret->flex) && copy_secrets(secret, m, &ret->flex) ? ERR_OK
                                                                                        : err_nomem(e);
}

enum err_code storage_job_make(const struct pod *p, const struct storage_source *s,
                               struct flex_drivers *drivers, struct arena *memory, struct storage_job *ret,
                               struct err *e)
{
    *ret = (struct storage_job){ .is_flex = false };
    if ((s->block ? storage_device_place : storage_place)(p, s->storage, s->name, ret->target,
                                                          sizeof(ret->target), e) != ERR_OK)
        return e->code;
    return s->storage->kind == API_STORAGE_FLEX ? make_flex(p, s, drivers, memory, ret, e)
                                                : make_spec(p, s, memory, ret, e);
}
