/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of Kubernetes' validation for PersistentVolumes, and for sources of volumes that pods have, too. */
#include "agent/api/manifest/internal.h"
#include "agent/api/quantity.h"
#include "agent/api/storage.h"
#include "base/codec/json.h"

#include <string.h>

/* RFC 3720, as Kubernetes checks it. */
static bool is_iscsi_name(const char *name)
{
    return str_starts(name, "iqn.") || str_starts(name, "eui.") || str_starts(name, "naa.");
}

static void check_iscsi(struct api_check *c, const struct api_storage *s)
{
    if (s->iqn != NULL && !is_iscsi_name(s->iqn))
        api_fault_at(c, "iqn", "%s must start with iqn., eui. or naa.", QUOTE(s->iqn));
    if (s->initiator != NULL && !is_iscsi_name(s->initiator))
        api_fault_at(c, "initiatorName", "%s must start with iqn., eui. or naa.", QUOTE(s->initiator));
    if ((s->chap_discovery || s->chap_session) && s->secret.name == NULL)
        api_fault_at(c, "secretRef", "is required with chapAuthDiscovery or chapAuthSession");
}

static void check_fc(struct api_check *c, const struct api_storage *s)
{
    if (s->wwns.n > 0 && s->wwids.n > 0)
        api_fault_at(c, "targetWWNs", "can not specify both targetWWNs and wwids");
    else if (s->wwns.n == 0 && s->wwids.n == 0)
        api_fault_at(c, "targetWWNs", "must specify either targetWWNs or wwids");
    else if (s->wwns.n > 0 && s->lun < 0)
        api_fault_at(c, "lun", "is required if targetWWNs is specified");
}

/* The agent adds its own options to those of a driver. */
static void check_options(struct api_check *c, const struct api_kvs *options)
{
    static const char *const reserved[] = { "kubernetes.io", "k8s.io" };

    for (size_t i = 0; i < options->n; i++)
        for (size_t k = 0; k < ARRAY_LEN(reserved); k++) {
            const char *key = options->v[i].key;
            size_t n = strcspn(key, "/"), m = strlen(reserved[k]);

            if (n >= m && strncasecmp(key + n - m, reserved[k], m) == 0 && (n == m || key[n - m - 1] == '.'))
                api_fault_at(c, "options", "%s: kubernetes.io and k8s.io namespaces are reserved",
                             QUOTE(key));
        }
}

static void check_absolute(struct api_check *c, const char *path)
{
    if (path != NULL && path[0] != '/')
        api_fault_at(c, "path", "%s must be an absolute path", QUOTE(path));
}

static void check_reference(struct api_check *c, const char *field, const struct api_storage_secret *s)
{
    if ((s->name == NULL) != (s->namespace_ == NULL))
        api_fault_at(c, field, "needs a name and a namespace");
}

void api_validate_storage(struct api_check *c, const struct api_storage *s, bool of_pod)
{
    size_t mark = api_enter(c, api_storage_name(s->kind));

    switch (s->kind) {
    case API_STORAGE_NONE:
        break;
    case API_STORAGE_HOST_PATH:
    case API_STORAGE_LOCAL:
    case API_STORAGE_NFS:
        check_absolute(c, s->path);
        break;
    case API_STORAGE_ISCSI:
        check_iscsi(c, s);
        break;
    case API_STORAGE_FC:
        check_fc(c, s);
        break;
    case API_STORAGE_FLEX:
        check_options(c, &s->opts);
        break;
    case API_STORAGE_CSI:
        check_reference(c, "nodeStageSecretRef", &s->stage_secret);
        check_reference(c, "nodePublishSecretRef", &s->publish_secret);
        check_reference(c, "nodeExpandSecretRef", &s->expand_secret);
        break;
    }
    if (!of_pod && s->secret.namespace_ != NULL && s->secret.name == NULL)
        api_fault_at(c, "secretRef", "needs a name");
    api_leave(c, mark);
}

void api_validate_access_modes(struct api_check *c, const json_t *modes)
{
    if (json_array_size(modes) == 0)
        api_fault_at(c, "accessModes", "required: at least 1 access mode is required");
    if (json_array_size(modes) > 1 && json_has(modes, "ReadWriteOncePod"))
        api_fault_at(c, "accessModes", "not allowed: may not use ReadWriteOncePod with other access modes");
}

void api_validate_pv(struct api_check *c, const struct api_pv *pv, const json_t *spec)
{
    const struct quantity *size = api_resource_get(&pv->capacity, "storage");

    api_validate_access_modes(c, json_object_get(spec, "accessModes"));
    if (size == NULL)
        api_fault_at(c, "capacity", "storage is required");
    else if (size->nano <= 0)
        api_fault_at(c, "capacity", "storage must be greater than 0");
    if (str_eq(pv->reclaim_policy, "Recycle") && str_eq(pv->storage.path, "/"))
        api_fault_at(c, "persistentVolumeReclaimPolicy", "may not be Recycle for a hostPath mount of /");
    api_validate_storage(c, &pv->storage, false);
}

/* ---- PersistentVolumeClaim ---- */

static void check_size(struct api_check *c, const json_t *requests)
{
    const char *text = json_str(requests, "storage");
    size_t outer = api_enter(c, "resources"), mark = api_enter_key(c, "storage");
    struct quantity size;

    if (json_object_get(requests, "storage") == NULL)
        api_fault(c, "required");
    else if (text != NULL && quantity_parse(text, &size, ERR_IGNORED) == ERR_OK && size.nano <= 0)
        api_fault(c, "%s must be greater than zero", QUOTE(text));
    api_leave(c, mark);
    api_leave(c, outer);
}

static void check_class(struct api_check *c, const json_t *spec, const char *field)
{
    const char *name = json_str(spec, field), *rule;

    if (name == NULL || name[0] == '\0')
        return;
    rule = api_format_rule(API_FMT_SUBDOMAIN, name);
    if (rule != NULL)
        api_fault_at(c, field, "%s %s", QUOTE(name), rule);
}

void api_validate_claim(struct api_check *c, const json_t *spec)
{
    size_t mark;

    api_validate_access_modes(c, json_object_get(spec, "accessModes"));
    mark = api_enter(c, "selector");
    api_validate_selector(c, json_object_get(spec, "selector"));
    api_leave(c, mark);
    check_size(c, json_at(spec, "resources.requests"));
    check_class(c, spec, "storageClassName");
    check_class(c, spec, "volumeAttributesClassName");
}
