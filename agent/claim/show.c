/* SPDX-License-Identifier: Apache-2.0 */
/* show - claims and PersistentVolumes with their binding, as an API server shows them. */
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
    }
    if (one != NULL && one->volume != NULL) {
        json_put_str(spec, "volumeName", one->volume);
        json_object_set(status, "accessModes", json_object_get(spec, "accessModes"));
        json_object_set_new(status, "capacity", json_pack("{s:s*}", "storage", one->size));
    } else if (one != NULL && one->problem[0] != '\0') {
        json_object_set_new(status, "conditions",
                            json_pack("[{s:s, s:s, s:s, s:s}]", "type", "coracle.dev/Unbound", "status",
                                      "True", "reason", "WaitForVolume", "message", one->problem));
    }
    json_object_set_new(o, "status", status);
}

static void show_volume(const struct claims *c, const char *name, json_t *o)
{
    const struct claim *by = NULL;
    json_t *spec = member(o, "spec");

    for (const struct claim *one = c->all; one != NULL && by == NULL; one = one->hh.next)
        if (str_eq(one->volume, name))
            by = one;
    if (by != NULL) {
        const char *slash = strchr(by->key, '/');

        json_object_set_new(spec, "claimRef",
                            json_pack("{s:s, s:s, s:s%, s:s, s:s}", "apiVersion", "v1", "kind",
                                      "PersistentVolumeClaim", "namespace", by->key,
                                      (size_t)(slash - by->key), "name", slash + 1, "uid", by->uid));
    }
    if (json_object_get(spec, "persistentVolumeReclaimPolicy") == NULL)
        json_put_str(spec, "persistentVolumeReclaimPolicy", "Retain");
    json_object_set_new(o, "status", json_pack("{s:s}", "phase", by != NULL ? "Bound" : "Available"));
}

void claims_show(struct claims *c, enum api_kind kind, const char *namespace_, const char *name,
                 json_t *object)
{
    if (kind == API_KIND_CLAIM)
        show_claim(c, namespace_, name, object);
    else if (kind == API_KIND_PERSISTENT_VOLUME)
        show_volume(c, name, object);
}
