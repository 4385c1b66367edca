/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/csi_object.h"

#include "base/buf.h"
#include "base/codec/json.h"

#include <string.h>

enum err_code csi_object_read(const struct api_generic *driver, struct csi_object *ret, struct err *e)
{
    json_t *object = NULL, *spec, *modes;
    const char *policy;

    if (json_parse(driver->json, strlen(driver->json), SIZE_MAX, &object, "CSIDriver", e) != ERR_OK)
        return e->code;
    spec = json_object_get(object, "spec");
    modes = json_object_get(spec, "volumeLifecycleModes");
    policy = json_str(spec, "fsGroupPolicy");
    *ret = (struct csi_object){
        .pod_info = json_flag(spec, "podInfoOnMount"),
        .republish = json_flag(spec, "requiresRepublish"),
        .ephemeral = json_has(modes, "Ephemeral"),
        .group_policy = str_eq(policy, "File")   ? CSI_GROUP_FILE
                        : str_eq(policy, "None") ? CSI_GROUP_NONE
                                                 : CSI_GROUP_RWO_WITH_FS_TYPE,
    };
    json_decref(object);
    return ERR_OK;
}

enum err_code csi_object_allows_inline(const struct csi_object *object, const char *driver, struct err *e)
{
    if (object != NULL && object->ephemeral)
        return ERR_OK;
    return err_set(e, ERR_UNIMPLEMENTED,
                   "kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode "
                   "\"Ephemeral\" not supported by driver %.100s (%s)",
                   driver, object != NULL ? "only supports [\"Persistent\"]" : "no CSIDriver object");
}
