/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/csi_object.h"

#include "base/buf.h"
#include "base/codec/json.h"

#include <string.h>

#define TOKEN_SECONDS 3600 /* kubelet's default */

static enum err_code read_tokens(const json_t *list, struct csi_object *ret, struct err *e)
{
    const json_t *one;
    size_t i;

    if (json_array_size(list) > CSI_TOKENS_MAX)
        return err_set(e, ERR_EXHAUSTED, "tokenRequests: more than %d", CSI_TOKENS_MAX);
    json_array_foreach ((json_t *)(uintptr_t)list, i, one) {
        const char *audience = json_str(one, "audience");
        struct csi_token_wish *w = &ret->tokens[ret->n_tokens++];

        if (audience != NULL && strlen(audience) >= sizeof(w->audience))
            return err_set(e, ERR_INVALID, "tokenRequests[%zu].audience: more than %zu bytes", i,
                           sizeof(w->audience) - 1);
        strcpy(w->audience, audience != NULL ? audience : "");
        w->seconds = json_int(one, "expirationSeconds", TOKEN_SECONDS);
    }
    return ERR_OK;
}

static bool flag(const json_t *spec, const char *key, bool otherwise)
{
    const json_t *v = json_object_get(spec, key);

    return v == NULL ? otherwise : json_is_true(v);
}

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
        .persistent = json_array_size(modes) == 0 || json_has(modes, "Persistent"),
        .attach = flag(spec, "attachRequired", true),
        .selinux_mount = json_flag(spec, "seLinuxMount"),
        .tokens_secret = json_flag(spec, "serviceAccountTokenInSecrets"),
        .group_policy = str_eq(policy, "File")   ? CSI_GROUP_FILE
                        : str_eq(policy, "None") ? CSI_GROUP_NONE
                                                 : CSI_GROUP_RWO_WITH_FS_TYPE,
    };
    if (read_tokens(json_object_get(spec, "tokenRequests"), ret, e) != ERR_OK)
        err_wrap(e, "CSIDriver \"%.80s\"", driver->meta.name);
    json_decref(object);
    return e->code;
}

enum err_code csi_object_allows(const struct csi_object *object, const char *driver, bool ephemeral,
                                struct err *e)
{
    const char *only = object == NULL      ? "no CSIDriver object"
                       : object->ephemeral ? "only supports [\"Ephemeral\"]"
                                           : "only supports [\"Persistent\"]";

    if (object == NULL ? !ephemeral : ephemeral ? object->ephemeral : object->persistent)
        return ERR_OK;
    return err_set(e, ERR_UNIMPLEMENTED,
                   "kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode "
                   "\"%s\" not supported by driver %.100s (%s)",
                   ephemeral ? "Ephemeral" : "Persistent", driver, only);
}
