/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cluster/claim_state.h"

#include "base/buf.h"
#include "base/codec/json.h"

#include <stdio.h>
#include <string.h>

#define CODE_RESOURCE_EXHAUSTED 8 /* of gRPC */

/* The rule of k8s.io/component-helpers/storage/ephemeral, VolumeIsForPod(). */
static bool is_owned_by(const json_t *claim, const char *uid)
{
    const json_t *owners = json_at(claim, "metadata.ownerReferences"), *owner;
    size_t i;

    json_array_foreach (owners, i, owner)
        if (json_flag(owner, "controller"))
            return str_eq(json_str(owner, "uid"), uid);
    return false;
}

enum err_code claim_state_volume(const json_t *claim, const struct claim_user *user, const char **ret,
                                 struct err *e)
{
    const json_t *meta = json_object_get(claim, "metadata"), *spec = json_object_get(claim, "spec");
    const char *name = json_str(meta, "name"), *volume = json_str(spec, "volumeName");

    if (user->starts && json_str(meta, "deletionTimestamp") != NULL)
        return err_set(e, ERR_PRECONDITION, "PVC is being deleted");
    if (!str_eq(json_str(json_object_get(claim, "status"), "phase"), "Bound"))
        return err_set(e, ERR_PRECONDITION, "PVC is not bound");
    if (volume == NULL || volume[0] == '\0')
        return err_set(e, ERR_PRECONDITION, "PVC has empty pvc.Spec.VolumeName");
    if (user->ephemeral && !is_owned_by(claim, user->uid))
        return err_set(e, ERR_PRECONDITION, "PVC %s/%s was not created for pod %s/%s (pod is not owner)",
                       user->namespace_, name != NULL ? name : "?", user->namespace_, user->pod);
    *ret = volume;
    return ERR_OK;
}

enum err_code claim_state_is_bound(const json_t *claim, const json_t *volume, struct err *e)
{
    const json_t *ref = json_at(volume, "spec.claimRef");
    const char *name = json_str(json_object_get(volume, "metadata"), "name"),
               *wanted = json_str(json_object_get(claim, "metadata"), "uid"), *uid = json_str(ref, "uid");

    name = name != NULL ? name : "?";
    if (!json_is_object(ref))
        return err_set(
            e, ERR_PRECONDITION,
            "found PV object %.253s with nil pv.Spec.ClaimRef indicating it is not yet bound to the "
            "claim",
            name);
    if (wanted == NULL || !str_eq(uid, wanted))
        return err_set(
            e, ERR_PRECONDITION,
            "found PV object %.253s but its pv.Spec.ClaimRef.UID %.63s does not point to claim.UID "
            "%.63s",
            name, uid != NULL ? uid : "", wanted != NULL ? wanted : "");
    return ERR_OK;
}

enum err_code attachment_state(const json_t *object, const struct attachment_want *want, const json_t **ret,
                               struct err *e)
{
    const json_t *status = json_object_get(object, "status"), *error = json_object_get(status, "attachError");
    const char *message = json_str(error, "message");

    if (json_str(json_object_get(object, "metadata"), "deletionTimestamp") != NULL)
        return err_set(e, ERR_UNAVAILABLE, "volume attachment %.80s is being deleted", want->name);
    if (json_flag(status, "attached")) {
        *ret = json_object_get(status, "attachmentMetadata");
        return ERR_OK;
    }
    if (json_int(error, "errorCode", 0) == CODE_RESOURCE_EXHAUSTED)
        return err_set(e, ERR_EXHAUSTED, "Node has reached its volume attachment limit: %.300s",
                       message != NULL ? message : "");
    if (message != NULL && message[0] != '\0')
        return err_set(e, ERR_PRECONDITION, "%.400s", message);
    return err_set(e, ERR_UNAVAILABLE, "volume %.160s is not attached for volume attachment %.80s",
                   want->handle, want->name);
}

int attachable_name(const char *driver, const char *handle, char *ret, size_t size)
{
    return snprintf(ret, size, "kubernetes.io/csi/%s^%s", driver, handle);
}

bool attachable_is_in(const json_t *list, const char *name)
{
    const json_t *v;
    size_t i;

    json_array_foreach (list, i, v)
        if (str_eq(json_is_object(v) ? json_str(v, "name") : json_string_value(v), name))
            return true;
    return false;
}

const char *attachable_device(const json_t *list, const char *name)
{
    const json_t *v;
    size_t i;

    json_array_foreach (list, i, v)
        if (str_eq(json_str(v, "name"), name))
            return json_str(v, "devicePath");
    return NULL;
}
