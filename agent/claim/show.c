/* SPDX-License-Identifier: Apache-2.0 */
/* show - claims and PersistentVolumes with their binding, in the form of an API server. */
#include "agent/claim/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <string.h>

static json_t *member(json_t *o, const char *name)
{
    json_t *found = json_object_get(o, name);

    if (found == NULL) {
        found = json_object();
        json_object_set_new(o, name, found);
    }
    return found;
}

/* Adds the finalizer that a controller would set, and the time since which the object is only protected. */
static void show_protection(json_t *meta, const char *finalizer)
{
    json_t *own = json_object_get(meta, "annotations");
    const char *deleted = json_str(own, CLAIM_DELETED);

    json_object_set_new(meta, "finalizers", json_pack("[s]", finalizer));
    if (deleted == NULL)
        return;
    json_put_str(meta, "deletionTimestamp", deleted);
    json_object_set_new(meta, "deletionGracePeriodSeconds", json_integer(0));
    json_object_del(own, CLAIM_DELETED);
    if (json_object_size(own) == 0)
        json_object_del(meta, "annotations");
}

/* The volume's capacity and access modes, as the binder sets them. */
static void show_modes(json_t *status, const struct claim *one, const json_t *spec)
{
    json_t *modes = json_array();

    for (size_t i = 0; one->pv != NULL && i < one->pv->pv->access_modes.n; i++)
        json_array_append_new(modes, json_string(one->pv->pv->access_modes.v[i]));
    if (one->pv != NULL) {
        json_object_set_new(status, "accessModes", modes);
        return;
    }
    json_decref(modes);
    json_object_set(status, "accessModes", json_object_get(spec, "accessModes"));
}

static void show_claim(const struct claims *c, const char *namespace_, const char *name, json_t *o)
{
    char key[CLAIM_KEY_SIZE], text[CLOCK_RFC3339_SIZE];
    json_t *meta = member(o, "metadata"), *spec = member(o, "spec"), *status = json_object();
    const struct claim *one;

    snprintf(key, sizeof(key), "%.63s/%.253s", namespace_, name);
    HASH_FIND_STR(c->all, key, one);
    json_put_str(status, "phase", one != NULL && one->volume != NULL ? "Bound" : "Pending");
    if (one != NULL) {
        clock_format_s(one->created_ns, text);
        json_put_str(meta, "uid", one->uid);
        json_put_str(meta, "creationTimestamp", text);
        show_protection(meta, "kubernetes.io/pvc-protection");
    }
    if (one != NULL && one->volume != NULL) {
        json_put_str(spec, "volumeName", one->volume);
        show_modes(status, one, spec);
        json_object_set_new(status, "capacity", json_pack("{s:s*}", "storage", one->size));
    } else if (one != NULL && one->problem[0] != '\0') {
        json_object_set_new(status, "conditions",
                            json_pack("[{s:s, s:s, s:s, s:s}]", "type", "coracle.dev/Unbound", "status",
                                      "True", "reason", "WaitForVolume", "message", one->problem));
    }
    json_object_set_new(o, "status", status);
}

static json_t *claim_ref(const char *key, const char *uid)
{
    const char *slash = strchr(key, '/');

    if (slash == NULL)
        return NULL;
    return json_pack("{s:s, s:s, s:s%, s:s, s:s}", "apiVersion", "v1", "kind", "PersistentVolumeClaim",
                     "namespace", key, (size_t)(slash - key), "name", slash + 1, "uid", uid);
}

/* The agent never deletes or empties a volume that an administrator created. */
static json_t *released_status(const char *policy)
{
    if (strcmp(policy, "Retain") == 0)
        return json_pack("{s:s}", "phase", "Released");
    return json_pack("{s:s, s:s, s:s}", "phase", "Failed", "reason",
                     strcmp(policy, "Delete") == 0 ? "VolumeFailedDelete" : "VolumeFailedRecycle", "message",
                     "a node that joins no cluster removes nothing that a PersistentVolume names");
}

static void show_volume(const struct claims *c, const char *name, json_t *o)
{
    const struct claim *by = NULL;
    const struct released *released = claims_released(c, name);
    json_t *spec = member(o, "spec");
    const char *policy = json_str(spec, "persistentVolumeReclaimPolicy");

    for (const struct claim *one = c->all; one != NULL && by == NULL; one = one->hh.next)
        if (str_eq(one->volume, name))
            by = one;
    show_protection(member(o, "metadata"), "kubernetes.io/pv-protection");
    if (by != NULL)
        json_object_set_new(spec, "claimRef", claim_ref(by->key, by->uid));
    else if (released != NULL && released->claim[0] != '\0')
        json_object_set_new(spec, "claimRef", claim_ref(released->claim, released->uid));
    json_object_set_new(o, "status",
                        by != NULL         ? json_pack("{s:s}", "phase", "Bound")
                        : released != NULL ? released_status(policy != NULL ? policy : "Retain")
                                           : json_pack("{s:s}", "phase", "Available"));
}

void claims_show(struct claims *c, enum api_kind kind, const char *namespace_, const char *name,
                 json_t *object)
{
    if (kind == API_KIND_CLAIM)
        show_claim(c, namespace_, name, object);
    else if (kind == API_KIND_PERSISTENT_VOLUME)
        show_volume(c, name, object);
}
